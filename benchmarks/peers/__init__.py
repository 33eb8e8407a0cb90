"""Other ways to give out the same pages, each small, honest and written as its users would."""
