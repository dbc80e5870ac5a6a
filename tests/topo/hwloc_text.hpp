// SPDX-License-Identifier: Apache-2.0
// A small two-package host in hwloc 2's XML, written for these tests: GPU and NIC below one switch
// on the first package, a dual-port NIC on the second, four NVLinks between the two GPUs.
#pragma once

namespace gdrx::topo::test {

inline constexpr const char* kHwlocXml = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1024"/>
   <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4">
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
   </object>
   <object type="Bridge" gp_index="20" bridge_type="0-1" depth="0" bridge_pci="0000:[10-17]">
    <object type="Bridge" gp_index="21" bridge_type="1-1" depth="1" bridge_pci="0000:[11-17]" pci_busid="0000:10:01.0" pci_type="0604 [8086:2030] [0000:0000] 04" pci_link_speed="15.753846">
     <object type="Bridge" gp_index="22" bridge_type="1-1" depth="2" bridge_pci="0000:[12-17]" pci_busid="0000:11:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="15.753846">
      <object type="Bridge" gp_index="23" bridge_type="1-1" depth="3" bridge_pci="0000:[13-13]" pci_busid="0000:12:00.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">
       <object type="PCIDev" gp_index="24" pci_busid="0000:13:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692">
        <object type="OSDev" gp_index="25" name="nvml0" subtype="NVML" osdev_type="5"/>
       </object>
      </object>
      <object type="Bridge" gp_index="26" bridge_type="1-1" depth="3" bridge_pci="0000:[14-14]" pci_busid="0000:12:01.0" pci_type="0604 [1000:c010] [1000:a096] b0" pci_link_speed="31.507692">
       <object type="PCIDev" gp_index="27" pci_busid="0000:14:00.0" pci_type="0207 [15b3:101b] [15b3:0003] 00" pci_link_speed="31.507692">
        <object type="OSDev" gp_index="28" name="ib0" osdev_type="2"/>
        <object type="OSDev" gp_index="29" name="mlx5_0" osdev_type="3"/>
       </object>
      </object>
     </object>
    </object>
   </object>
  </object>
  <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="6">
   <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="7" local_memory="1024"/>
   <object type="Core" os_index="0" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="8">
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="9"/>
   </object>
   <object type="Bridge" gp_index="30" bridge_type="0-1" depth="0" bridge_pci="0000:[80-82]">
    <object type="Bridge" gp_index="31" bridge_type="1-1" depth="1" bridge_pci="0000:[81-81]" pci_busid="0000:80:01.0" pci_type="0604 [8086:2030] [0000:0000] 04" pci_link_speed="15.753846">
     <object type="PCIDev" gp_index="32" pci_busid="0000:81:00.0" pci_type="0200 [15b3:101d] [15b3:0003] 00" pci_link_speed="15.753846">
      <object type="OSDev" gp_index="33" name="mlx5_1" osdev_type="3"/>
     </object>
     <object type="PCIDev" gp_index="34" pci_busid="0000:81:00.1" pci_type="0200 [15b3:101d] [15b3:0003] 00" pci_link_speed="15.753846">
      <object type="OSDev" gp_index="35" name="mlx5_2" osdev_type="3"/>
     </object>
    </object>
    <object type="Bridge" gp_index="36" bridge_type="1-1" depth="1" bridge_pci="0000:[82-82]" pci_busid="0000:80:02.0" pci_type="0604 [8086:2030] [0000:0000] 04" pci_link_speed="15.753846">
     <object type="PCIDev" gp_index="37" pci_busid="0000:82:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="15.753846">
      <object type="OSDev" gp_index="38" name="nvml1" subtype="NVML" osdev_type="5"/>
     </object>
    </object>
   </object>
  </object>
 </object>
 <distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth">
  <indexes length="18">OSDev:25 OSDev:38 </indexes>
  <u64values length="18">0 100000 100000 0 </u64values>
 </distances2hetero>
</topology>
)";

}  // namespace gdrx::topo::test
