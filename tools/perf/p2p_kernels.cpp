// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/p2p_kernels.hpp"

namespace gdrx::perf {

// Stores and loads: thread i takes vectors i, i + threads, ...; four are in flight at once.
// Flags at system scope, since the other side is another GPU; relaxed, since they carry nothing but
// themselves. The deadline is looked at every 1024th time: the timer is slow to read.
const char* const kP2pKernels = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry gdrx_store(.param .u64 to, .param .u64 vectors, .param .u32 value)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [to];
  ld.param.u64 %d2, [vectors];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r7, %r6, %r3;
  cvt.u64.u32 %d3, %r5;
  cvt.u64.u32 %d4, %r7;
  mul.lo.u64 %d5, %d4, 16;
  mul.lo.u64 %d6, %d4, 3;
FOUR:
  add.u64 %d7, %d3, %d6;
  setp.ge.u64 %p1, %d7, %d2;
  @%p1 bra ONE;
  mad.lo.u64 %d8, %d3, 16, %d1;
  st.global.v4.u32 [%d8], {%r1, %r1, %r1, %r1};
  add.u64 %d8, %d8, %d5;
  st.global.v4.u32 [%d8], {%r1, %r1, %r1, %r1};
  add.u64 %d8, %d8, %d5;
  st.global.v4.u32 [%d8], {%r1, %r1, %r1, %r1};
  add.u64 %d8, %d8, %d5;
  st.global.v4.u32 [%d8], {%r1, %r1, %r1, %r1};
  add.u64 %d3, %d7, %d4;
  bra FOUR;
ONE:
  setp.ge.u64 %p2, %d3, %d2;
  @%p2 bra DONE;
  mad.lo.u64 %d8, %d3, 16, %d1;
  st.global.v4.u32 [%d8], {%r1, %r1, %r1, %r1};
  add.u64 %d3, %d3, %d4;
  bra ONE;
DONE:
  ret;
}

.visible .entry gdrx_load(.param .u64 from, .param .u64 vectors, .param .u64 sink)
{
  .reg .pred %p<4>;
  .reg .b32 %r<28>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [vectors];
  ld.param.u64 %d9, [sink];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d9, %d9;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r7, %r6, %r3;
  cvt.u64.u32 %d3, %r5;
  cvt.u64.u32 %d4, %r7;
  mul.lo.u64 %d5, %d4, 16;
  mul.lo.u64 %d6, %d4, 3;
  mov.u32 %r8, 0;
FOUR:
  add.u64 %d7, %d3, %d6;
  setp.ge.u64 %p1, %d7, %d2;
  @%p1 bra ONE;
  mad.lo.u64 %d8, %d3, 16, %d1;
  ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d8];
  add.u64 %d8, %d8, %d5;
  ld.global.v4.u32 {%r14, %r15, %r16, %r17}, [%d8];
  add.u64 %d8, %d8, %d5;
  ld.global.v4.u32 {%r18, %r19, %r20, %r21}, [%d8];
  add.u64 %d8, %d8, %d5;
  ld.global.v4.u32 {%r22, %r23, %r24, %r25}, [%d8];
  add.u32 %r10, %r10, %r11;
  add.u32 %r12, %r12, %r13;
  add.u32 %r14, %r14, %r15;
  add.u32 %r16, %r16, %r17;
  add.u32 %r18, %r18, %r19;
  add.u32 %r20, %r20, %r21;
  add.u32 %r22, %r22, %r23;
  add.u32 %r24, %r24, %r25;
  add.u32 %r10, %r10, %r12;
  add.u32 %r14, %r14, %r16;
  add.u32 %r18, %r18, %r20;
  add.u32 %r22, %r22, %r24;
  add.u32 %r10, %r10, %r14;
  add.u32 %r18, %r18, %r22;
  add.u32 %r10, %r10, %r18;
  add.u32 %r8, %r8, %r10;
  add.u64 %d3, %d7, %d4;
  bra FOUR;
ONE:
  setp.ge.u64 %p2, %d3, %d2;
  @%p2 bra DONE;
  mad.lo.u64 %d8, %d3, 16, %d1;
  ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d8];
  add.u32 %r10, %r10, %r11;
  add.u32 %r12, %r12, %r13;
  add.u32 %r10, %r10, %r12;
  add.u32 %r8, %r8, %r10;
  add.u64 %d3, %d3, %d4;
  bra ONE;
DONE:
  setp.ne.u32 %p3, %r8, 0x9e3779b9;
  @%p3 bra OUT;
  st.global.u32 [%d9], %r8;
OUT:
  ret;
}

.visible .entry gdrx_ping(.param .u64 mine, .param .u64 theirs, .param .u32 rounds,
                          .param .u32 first, .param .u64 verdict)
{
  .reg .pred %p<8>;
  .reg .b32 %r<10>;
  .reg .b64 %d<10>;
  ld.param.u64 %d1, [mine];
  ld.param.u64 %d2, [theirs];
  ld.param.u32 %r1, [rounds];
  ld.param.u32 %r2, [first];
  ld.param.u64 %d3, [verdict];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  cvta.to.global.u64 %d3, %d3;
  mov.u32 %r3, 1;
  setp.eq.u32 %p1, %r2, 0;
ROUND:
  setp.gt.u32 %p2, %r3, %r1;
  @%p2 bra DONE;
  @%p1 bra WAIT;
  st.relaxed.sys.global.u32 [%d2], %r3;
WAIT:
  mov.u64 %d4, 0;
  mov.u32 %r5, 0;
SPIN:
  ld.relaxed.sys.global.u32 %r4, [%d1];
  setp.ge.u32 %p3, %r4, %r3;
  @%p3 bra CAME;
  add.u32 %r5, %r5, 1;
  and.b32 %r6, %r5, 1023;
  setp.ne.u32 %p4, %r6, 0;
  @%p4 bra SPIN;
  mov.u64 %d5, %globaltimer;
  setp.ne.u64 %p6, %d4, 0;
  @%p6 bra LATE;
  add.u64 %d4, %d5, 2000000000;
LATE:
  setp.lt.u64 %p5, %d5, %d4;
  @%p5 bra SPIN;
  bra DONE;
CAME:
  @!%p1 bra NEXT;
  st.relaxed.sys.global.u32 [%d2], %r3;
NEXT:
  add.u32 %r3, %r3, 1;
  bra ROUND;
DONE:
  sub.u32 %r7, %r3, 1;
  st.global.u32 [%d3], %r7;
  ret;
}
)";

}  // namespace gdrx::perf
