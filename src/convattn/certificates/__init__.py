"""Makes certificates out of the constructions; `convattn_check` judges them without this package."""
