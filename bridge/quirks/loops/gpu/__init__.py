"""The forms in which OpenVINO's GPU plugin computes a Loop correctly.

The plugin unrolls a Loop of constant trip count by itself. Of all others it has only some forms
right, as measured on an emulated device (`docs/devices.md`). So each Loop takes one of these:

- *unrolled* (`unrolled.py`): a Loop whose trip count is a small constant becomes its iterations. If
  a condition may end it early, each iteration is a branch of an If.
- *counted* (`counted.py`): a Loop with an unknown trip count, without a computed condition. It
  slices a range of numbers, one for each iteration.
- *conditional* (`conditional.py`): a Loop that a computed condition ends. It has only states: one
  counts the iterations, others collect the elements of stacks. The body gathers its slices.
- *padded* (`padded.py`): a Loop with tensors that may be empty. Each such axis has one more element
  inside. A padded Loop is then counted or conditional.

A counted or conditional Loop always runs at least once. Therefore its slices get a further part of
zeros if they may have none. Behind the Loop, stacks are cut to the real number of iterations, and
an If selects the initial states if no iteration should have run.

`kinds.py` tells which form a Loop can have, and has. `draft.py` has the steps that forms share.
"""
