// SPDX-License-Identifier: Apache-2.0
// All versions of the ABI that gdrx speaks: NCCL 2.20 to today.
#pragma once

#include "plugin/abi/net_v10.hpp"
#include "plugin/abi/net_v11.hpp"
#include "plugin/abi/net_v12.hpp"
#include "plugin/abi/net_v8.hpp"
#include "plugin/abi/net_v9.hpp"
