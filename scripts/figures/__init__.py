# SPDX-License-Identifier: Apache-2.0
"""The pages of figures, a file a page; `performance` writes them."""
