"""The Feature maps tab of TensorBoard: its server side, and the front end in ``static``."""
