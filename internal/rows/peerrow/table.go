// Package peerrow has the rows of package peer.
package peerrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is that of the newest rows, see rows.Table.
const Version = 1

// Table is the format of the row of a session.
var Table = rows.Table[*State]{Name: "peer", Version: Version}

// ChainTable is the format of the row with the head of a chain of audit records.
var ChainTable = rows.Table[*ChainRow]{Name: "peer", Version: Version}
