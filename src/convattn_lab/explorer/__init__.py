"""`convattn explore`: a page on this machine that shows what the heads of a model attend to."""
