"""What people do, in a real browser: Chromium, headless, against servers in processes of their own."""
