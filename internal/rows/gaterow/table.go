// Package gaterow has the rows of package gate.
package gaterow

import (
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/internal/rows"
)

// Version is that of the newest rows, see rows.Table.
const Version = 3

// Table is the format of the row of a session.
var Table = rows.Table[*State]{Name: "gate", Version: Version}

// GrantTable is the format of the row with the standing approvals for an agent.
var GrantTable = rows.Table[*Grants]{Name: "gate", Version: Version}

// EndedDigest identifies a gate that has ended in the field remembered of its session's row.
func EndedDigest(id string) digests.Digest { return digests.Of("gate ended", id) }
