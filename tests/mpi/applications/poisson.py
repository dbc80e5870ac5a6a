# SPDX-License-Identifier: Apache-2.0
"""Poisson's equation on a square by petsc4py: conjugate gradients, two dot products and a norm in each step."""
import sys, time

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc

N = 192
da = PETSc.DMDA().create([N, N], stencil_width=1)
matrix = da.createMatrix()
(x0, x1), (y0, y1) = da.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for y in range(y0, y1):
    for x in range(x0, x1):
        row.index = (x, y)
        for index, value in (((x, y), 4.0), ((x - 1, y), -1.0), ((x + 1, y), -1.0), ((x, y - 1), -1.0), ((x, y + 1), -1.0)):
            if 0 <= index[0] < N and 0 <= index[1] < N:
                column.index = index
                matrix.setValueStencil(row, column, value)
matrix.assemble()
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-10, max_it=1000)
right, found = da.createGlobalVec(), da.createGlobalVec()
right.set(1.0)
began = time.perf_counter()
solver.solve(right, found)
took = time.perf_counter() - began
PETSc.Sys.Print(f"steps {solver.getIterationNumber()} norm {found.norm():.12e} most {found.max()[1]:.12e} seconds {took:.6f}")
