// Package latencyrow has the rows of package latency.
package latencyrow

// Version is that of the newest rows, see rows.Table.
const Version = 1
