"""What all pages share: frame, sidebar, settings in the URL, runs, jobs and waiting."""
