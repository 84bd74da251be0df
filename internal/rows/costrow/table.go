package costrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is the highest version of a row that this build reads. Raise it only if an older build could not keep a promise with a newer
// row. A new field is no reason: unknown fields survive a rewrite.
const Version = 1

// SessionTable is the format of the row with the costs of a session.
var SessionTable = rows.Table[*SessionTotals]{Name: "cost", Version: Version}

// ScopeTable is the format of the row with the spending of a scope.
var ScopeTable = rows.Table[*ScopeTotals]{Name: "cost", Version: Version}
