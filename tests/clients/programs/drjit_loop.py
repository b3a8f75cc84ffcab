"""Gradient descent with automatic differentiation; arrays go to the device and come back unchanged."""
import drjit as dr
import numpy as np
from drjit.cuda.ad import Float

assert dr.has_backend(dr.JitBackend.CUDA)
w, b = Float(0.5), Float(0.0)
for i in range(4):
    h = np.arange(1 << 14, dtype=np.float32) + i
    x = Float(h)
    assert (x.numpy() == h).all()
    dr.enable_grad(w, b)
    loss = dr.mean(dr.square(w * x + b - 3 * x))
    dr.backward(loss)
    w, b = dr.detach(w) - 0.1 * dr.grad(w), dr.detach(b) - 0.1 * dr.grad(b)
    dr.eval(w, b)
    print("step", i, loss.numpy().shape, w.numpy().shape)
