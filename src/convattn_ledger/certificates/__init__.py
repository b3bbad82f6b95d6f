"""Makes certificates out of the constructions; `convattn_check` judges them on its own."""
