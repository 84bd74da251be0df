package turnrow

import "github.com/turntable-streams/turntable/internal/rows"

// Version is the highest version of a row that this build reads. Raise it only if an older build could not keep a promise with a newer
// row. A new field is no reason: unknown fields survive a rewrite.
const Version = 12

// Table is the format of the row of a session.
var Table = rows.Table[*State]{Name: "turn", Version: Version}
