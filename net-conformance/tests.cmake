# SPDX-License-Identifier: Apache-2.0
# The suite's own tests: the good plugin keeps all rules, each mutant fails its own.
set(reference $<TARGET_FILE:nccl_net_reference>)
add_test(NAME net_conformance.TheReferencePluginKeepsAllRules
  COMMAND net_conformance --abi all --strict ${reference})
add_test(NAME net_conformance.AllRulesAreListed
  COMMAND net_conformance --list --rule group)
set_tests_properties(net_conformance.AllRulesAreListed PROPERTIES
  PASS_REGULAR_EXPRESSION "group.any-order")
add_test(NAME net_conformance.AnUnknownRuleIsNamed COMMAND net_conformance --rule nonsense x)
set_tests_properties(net_conformance.AnUnknownRuleIsNamed PROPERTIES
  PASS_REGULAR_EXPRESSION "no such rule")
set_tests_properties(net_conformance.TheReferencePluginKeepsAllRules
  net_conformance.AllRulesAreListed net_conformance.AnUnknownRuleIsNamed PROPERTIES
  LABELS conformance TIMEOUT 300)

add_test(NAME net_conformance.TheBenchMeasuresTwoProcesses
  COMMAND net_conformance --bench --sizes 8,4K,1M --scale 0.02 ${reference})
set_tests_properties(net_conformance.TheBenchMeasuresTwoProcesses PROPERTIES
  PASS_REGULAR_EXPRESSION " 1048576 " LABELS conformance TIMEOUT 120)
add_test(NAME net_conformance.ASizeThatIsNoneIsNamed
  COMMAND net_conformance --bench --sizes 8,4Q ${reference})
set_tests_properties(net_conformance.ASizeThatIsNoneIsNamed PROPERTIES
  PASS_REGULAR_EXPRESSION "'4Q' is no size" LABELS conformance TIMEOUT 60)

# gdrx_net_mutant(NAME RULE [ALSO...]): the mutant fails RULE, and no rule but the ones named.
function(gdrx_net_mutant name)
  add_test(NAME net_mutant.${name}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mutants/mutant.py $<TARGET_FILE:net_conformance>
      $<TARGET_FILE:nccl_net_mutant> ${reference} ${name} ${ARGN})
  # It waits three quarters of its time. scripts/test runs what waits beside the rest.
  set_tests_properties(net_mutant.${name} PROPERTIES LABELS "conformance;waits" TIMEOUT 300)
endfunction()
gdrx_net_mutant(none)
gdrx_net_mutant(null-member load.members)
gdrx_net_mutant(no-devices load.init)
gdrx_net_mutant(more-devices-each-time device.count)
gdrx_net_mutant(writes-beyond-properties device.structure)
gdrx_net_mutant(one-name-for-all device.names)
gdrx_net_mutant(no-host-memory device.pointers)
gdrx_net_mutant(no-speed device.limits)
gdrx_net_mutant(negative-latency device.latency)
gdrx_net_mutant(no-largest-message device.largest-message)
gdrx_net_mutant(unknown-offload device.offload)
gdrx_net_mutant(nine-parts device.parts)
gdrx_net_mutant(another-guid-each-time device.stable)
gdrx_net_mutant(refuses-hints device.hints)
gdrx_net_mutant(long-handle connect.listen)
gdrx_net_mutant(connect-waits connect.connect-at-once)
gdrx_net_mutant(accept-waits connect.accept-at-once)
gdrx_net_mutant(no-self-loop connect.self-loop)
gdrx_net_mutant(handle-stays-in-place connect.copied-handle)
gdrx_net_mutant(listener-owns-what-it-accepted connect.close-listener)
gdrx_net_mutant(handles-mixed-up connect.many)
gdrx_net_mutant(wants-a-device-handle connect.null-device-handle)
gdrx_net_mutant(remembers-the-abandoned connect.abandoned)
gdrx_net_mutant(takes-interrupts life.signals)
gdrx_net_mutant(one-finalize-for-all life.contexts)
gdrx_net_mutant(leaves-a-thread life.unload)
gdrx_net_mutant(loads-once life.again)
gdrx_net_mutant(greets life.quiet)
gdrx_net_mutant(wrong-thousand transfer.one)
gdrx_net_mutant(wrong-last-byte transfer.sizes)
gdrx_net_mutant(nothing-is-one-byte transfer.zero)
gdrx_net_mutant(reports-what-was-posted transfer.reported)
gdrx_net_mutant(writes-behind-the-message transfer.shorter)
gdrx_net_mutant(does-not-cut transfer.longer)
gdrx_net_mutant(neighbours-swapped transfer.order)
gdrx_net_mutant(small-overtakes-large transfer.mixed-order)
gdrx_net_mutant(done-before-read transfer.reuse)
gdrx_net_mutant(late-receive-fails transfer.late-receive process.two)
gdrx_net_mutant(one-receive-a-buffer transfer.same-buffer)
gdrx_net_mutant(one-sender-at-a-time transfer.both-ways thread.links thread.connecting)
gdrx_net_mutant(first-part-alone memory.inside transfer.mixed-order)
gdrx_net_mutant(wants-aligned-memory memory.unaligned)
gdrx_net_mutant(does-not-count-registrations memory.twice)
gdrx_net_mutant(wants-less-than-2-gib memory.vast)
gdrx_net_mutant(registers-when-idle-alone memory.under-way)
gdrx_net_mutant(takes-any-dma-buf memory.bad-dma-buf)
gdrx_net_mutant(keeps-what-it-refused request.none)
gdrx_net_mutant(leaves-done-alone request.done-flag)
gdrx_net_mutant(test-waits request.test-at-once)
gdrx_net_mutant(isend-waits request.isend-at-once)
gdrx_net_mutant(two-sizes-for-a-send request.one-size)
gdrx_net_mutant(wants-sizes request.null-sizes)
gdrx_net_mutant(few-groups request.budget)
gdrx_net_mutant(few-receives request.depth)
gdrx_net_mutant(wants-all-tested request.oldest-first)
gdrx_net_mutant(leaves-the-sentinel request.optional)
gdrx_net_mutant(consumes-nothing request.consumed)
gdrx_net_mutant(ignores-tags group.any-order group.sizes group.ahead group.in-order)
gdrx_net_mutant(wants-its-turn group.ahead)
gdrx_net_mutant(later-group-first group.in-order group.mixed-counts)
gdrx_net_mutant(single-after-group group.mixed-counts)
gdrx_net_mutant(last-of-a-tag-first group.same-tags)
gdrx_net_mutant(sizes-in-another-order group.sizes)
gdrx_net_mutant(one-size-more group.no-more-sizes)
gdrx_net_mutant(done-without-the-last group.waits-for-all)
gdrx_net_mutant(empty-part-never-comes group.empty-parts)
gdrx_net_mutant(flush-never-ends flush.ends)
gdrx_net_mutant(flush-has-sizes flush.no-sizes)
gdrx_net_mutant(flush-wants-bytes flush.some-empty)
gdrx_net_mutant(close-waits-for-receives close.receives-under-way)
gdrx_net_mutant(close-waits-for-sends close.sends-under-way)
gdrx_net_mutant(close-waits-for-the-other close.either-order close.after-send close.others
  close.sends-under-way)
gdrx_net_mutant(done-before-left close.after-send)
gdrx_net_mutant(closes-all-for-one close.others thread.links thread.connecting)
gdrx_net_mutant(insists-on-order close.registered)
gdrx_net_mutant(leaks-a-file close.leaves-nothing)
gdrx_net_mutant(handle-is-of-this-process process.two)
gdrx_net_mutant(waits-for-the-dead process.sender-killed)
gdrx_net_mutant(dies-with-the-receiver process.receiver-killed)
gdrx_net_mutant(says-nothing-of-death process.death-noticed)
gdrx_net_mutant(dead-listener-waits process.dead-listener)
gdrx_net_mutant(child-of-fork-dies process.fork)
gdrx_net_mutant(pages-go-to-the-child process.fork)
gdrx_net_mutant(hides-its-heap-from-children process.fork)
gdrx_net_mutant(hides-memory-from-children process.fork-copies)
gdrx_net_mutant(opens-alone thread.connecting thread.links)
gdrx_net_mutant(one-thread-at-a-time thread.links thread.ends thread.connecting)
set_tests_properties(net_mutant.test-waits PROPERTIES ENVIRONMENT NET_MUTANT_PIECES=16) # it sleeps under 53 rules
# What they promise never comes.
foreach(name no-self-loop handles-mixed-up one-receive-a-buffer wants-all-tested empty-part-never-comes flush-never-ends
    close-waits-for-the-other handle-is-of-this-process)
  set_tests_properties(net_mutant.${name} PROPERTIES ENVIRONMENT NET_MUTANT_PATIENCE=4)
endforeach()

add_test(NAME net_conformance.ALibraryThatIsNoPluginIsTold
  COMMAND net_conformance --rule load.library libm.so.6)
set_tests_properties(net_conformance.ALibraryThatIsNoPluginIsTold PROPERTIES
  PASS_REGULAR_EXPRESSION "FAIL *load.library" LABELS conformance TIMEOUT 60)

add_test(NAME net_mutant.careless
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mutants/mutant.py $<TARGET_FILE:net_conformance>
    $<TARGET_FILE:nccl_net_careless> ${reference} careless load.symbols load.own-runtime)
set_tests_properties(net_mutant.careless PROPERTIES LABELS conformance TIMEOUT 300)

# Second processes made by a server, as on another host; a handle that another process cannot use.
set(two_hosts ${CMAKE_CURRENT_SOURCE_DIR}/suite/two_hosts.py $<TARGET_FILE:net_conformance>)
add_test(NAME net_conformance.TwoProcessesMayBeOfTwoHosts COMMAND ${two_hosts} ${reference})
add_test(NAME net_conformance.AFaultBetweenTwoHostsIsSeen
  COMMAND ${two_hosts} $<TARGET_FILE:nccl_net_mutant> process.two)
set_tests_properties(net_conformance.AFaultBetweenTwoHostsIsSeen PROPERTIES
  ENVIRONMENT "NET_MUTANT_BASE=${reference};NET_MUTANT=handle-is-of-this-process")
set_tests_properties(net_conformance.TwoProcessesMayBeOfTwoHosts
  net_conformance.AFaultBetweenTwoHostsIsSeen PROPERTIES LABELS conformance TIMEOUT 300)
add_test(NAME net_conformance.TheReferencePluginKeepsAllRulesApart
  COMMAND net_conformance --abi all --strict --apart ${reference})
set_tests_properties(net_conformance.TheReferencePluginKeepsAllRulesApart PROPERTIES
  LABELS conformance TIMEOUT 300)

# gdrx's own plugin: every version over UCX, and over simulated NICs, which are joined between
# processes. What listens is apart there: over a communicator's connection to itself no NIC carries
# anything.
if(NOT TARGET nccl_net_gdrx)
  return()
endif()
set(plugin $<TARGET_FILE:nccl_net_gdrx>)
function(gdrx_plugin_conforms name environment)
  add_test(NAME net_conformance.gdrx.${name} COMMAND net_conformance --strict ${ARGN} ${plugin})
  set_tests_properties(net_conformance.gdrx.${name} PROPERTIES LABELS conformance TIMEOUT 300
    ENVIRONMENT "${environment}")
endfunction()
if(TARGET gdrx_fabric_ucx)
  set(ucx "GDRX_TRANSPORT=ucx;GDRX_MODULE_PATH=$<TARGET_FILE_DIR:gdrx_fabric_ucx>")
  foreach(abi 8 9 10 11 12)
    gdrx_plugin_conforms(OverUcxV${abi} "${ucx}" --abi ${abi})
  endforeach()
  gdrx_plugin_conforms(OverUcxWithThreadsThatCopy "${ucx};GDRX_NET_COPY_THREADS=3" --apart)
endif()
if(TARGET gdrx_fabric_verbs_sim)
  set(sim "GDRX_TRANSPORT=verbs;GDRX_MODULE_PATH=$<TARGET_FILE_DIR:gdrx_fabric_verbs_sim>")
  foreach(abi 8 9 10 11 12)
    gdrx_plugin_conforms(OverSimulatedNicsV${abi} "${sim};NCCL_IB_TIMEOUT=10;SIM_NETWORK=conformance"
      --abi ${abi} --apart)
  endforeach()
endif()

# Builds that export one version alone: that one loads, and the newest is not there.
if(TARGET gdrx_fabric_ucx)
  foreach(abi 8 9 10)
    set(only $<TARGET_FILE:nccl_net_gdrx_only_v${abi}>)
    add_test(NAME net_conformance.gdrx.OnlyV${abi}Loads
      COMMAND net_conformance --strict --abi ${abi} --rule load ${only})
    add_test(NAME net_conformance.gdrx.OnlyV${abi}HasNoOther COMMAND net_conformance --abi 12 --rule load ${only})
    set_tests_properties(net_conformance.gdrx.OnlyV${abi}HasNoOther PROPERTIES
      PASS_REGULAR_EXPRESSION "no symbol ncclNetPlugin_v12")
    set_tests_properties(net_conformance.gdrx.OnlyV${abi}Loads net_conformance.gdrx.OnlyV${abi}HasNoOther
      PROPERTIES LABELS conformance TIMEOUT 60 ENVIRONMENT "${ucx}")
    add_dependencies(unit nccl_net_gdrx_only_v${abi})
  endforeach()
endif()

# Mutants of gdrx's plugin: the suite sees a fault in it, too.
function(gdrx_plugin_mutant name)
  add_test(NAME net_mutant.gdrx.${name}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mutants/mutant.py $<TARGET_FILE:net_conformance>
      $<TARGET_FILE:nccl_net_mutant> ${plugin} ${name} ${ARGN})
  set_tests_properties(net_mutant.gdrx.${name} PROPERTIES LABELS "conformance;waits" TIMEOUT 300
    ENVIRONMENT "${ucx}")
endfunction()
if(TARGET gdrx_fabric_ucx)
  gdrx_plugin_mutant(none)
  gdrx_plugin_mutant(long-handle connect.listen)
  gdrx_plugin_mutant(handle-stays-in-place connect.copied-handle)
  gdrx_plugin_mutant(takes-interrupts life.signals)
  gdrx_plugin_mutant(wrong-last-byte transfer.sizes)
  gdrx_plugin_mutant(reports-what-was-posted transfer.reported)
  gdrx_plugin_mutant(writes-behind-the-message transfer.shorter)
  gdrx_plugin_mutant(small-overtakes-large transfer.mixed-order)
  gdrx_plugin_mutant(wants-aligned-memory memory.unaligned)
  gdrx_plugin_mutant(wants-less-than-2-gib memory.vast)
  gdrx_plugin_mutant(leaves-done-alone request.done-flag)
  gdrx_plugin_mutant(two-sizes-for-a-send request.one-size)
  gdrx_plugin_mutant(leaves-the-sentinel request.optional)
  gdrx_plugin_mutant(sizes-in-another-order group.sizes)
  gdrx_plugin_mutant(empty-part-never-comes group.empty-parts)
  gdrx_plugin_mutant(insists-on-order close.registered)
  gdrx_plugin_mutant(leaks-a-file close.leaves-nothing)
  gdrx_plugin_mutant(handle-is-of-this-process process.two)
  gdrx_plugin_mutant(hides-memory-from-children process.fork-copies)
  gdrx_plugin_mutant(says-nothing-of-death process.death-noticed)
endif()
