"""Runs the graph of emit_nvtx_test.cc under PyTorch's own profiler: emit_nvtx_for_test.py FILE

FILE gets one label a line, in the order in which the operations began, as emit_nvtx would write them.
"""

import sys

import torch

torch.set_num_threads(1)
torch.manual_seed(1)
x = torch.randn(2, 3, 8, 8)
kernel = torch.randn(4, 3, 3, 3, requires_grad=True)
weight = torch.randn(5, 4, requires_grad=True)
bias = torch.zeros(5, requires_grad=True)
one = torch.ones(())

with torch.autograd.profiler.profile(record_shapes=True) as profile:
    features = torch.relu(torch.conv2d(x, kernel, None, [2, 2], [1, 1])).mean([2, 3])
    normalized = torch.layer_norm(features, [4])
    hidden = torch._C._nn.linear(normalized, weight, bias)
    loss = torch.log_softmax(hidden, 1).pow(2).sum()
    grads = torch.autograd.grad([loss], [weight, bias], [one], create_graph=True)
    penalty = grads[0].pow(2).sum() + loss
    penalty.backward(one)

# Its list for users leaves out an operation that only calls another one of its name. It gives the frame around a
# node the node's sequence number, which the frame does not have.
with open(sys.argv[1], "w") as file:
    for event in profile.kineto_results.events():
        label = event.name()
        if label == "aten::is_same_size":  # of torch.autograd in Python alone
            continue
        if event.sequence_nr() >= 0 and not label.startswith("autograd::engine::evaluate_function: "):
            label += ", seq = %d" % event.sequence_nr()
        if event.shapes():
            label += ", sizes = %s" % event.shapes()
        file.write(label + "\n")
