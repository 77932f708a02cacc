"""Changes to a model of a check, so that what happens inside it can be seen and steered.

`Surgery` changes a copy: it brings values out of Ifs and Loops, puts switches at them, and watches
which branches run. `slice_of` makes some nodes a model of their own. `twins` says which nodes and
values of another model stand for those of this one.
"""
