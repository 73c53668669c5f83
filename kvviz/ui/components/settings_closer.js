// On a phone the settings cover the page, and Streamlit leaves them open when a link among them was followed.

const NARROW = 768; // pixels: up to here Streamlit lays the settings over the page

export default ({ data }) => {
  const before = window.kvvizPage;
  window.kvvizPage = data.page;
  if (before === undefined || before === data.page || window.innerWidth > NARROW) return;
  const settings = document.querySelector('[data-testid="stSidebar"][data-collapsed="false"]');
  settings?.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
};
