/*
 * Where a device is in its machine, from what Linux shows of the PCI bus: its memory node, the PCIe
 * switch above it, and the network adapter that is below the same switch, which its traffic to
 * other hosts takes ("rail").
 */
#ifndef TFH_RECORD_WATCH_DEVICE_PLACE_H
#define TFH_RECORD_WATCH_DEVICE_PLACE_H

struct tfh_device_place {
	int node;      /* -1: not known */
	char pcie[16]; /* bus address of the nearest switch's upstream port, "" none */
	char nic[32];  /* name of the adapter, as of /sys/class/infiniband, "" none */
};

/* `sys`: "/sys"; `bus`: as cuDeviceGetPCIBusId gives it. Reads files, so it may be slow. */
void tfh_device_place(const char *sys, const char *bus, struct tfh_device_place *out);

#endif
