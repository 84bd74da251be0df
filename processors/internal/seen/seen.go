// Package seen has the rule about what a person must have seen before an approval counts. Arguments of up to Limit bytes are part
// of every event, frame and question about a request. Larger ones may be shown by their beginning, which says so and where the whole
// is. Such a request is approved only by a caller who was shown the whole, or who repeats its digest.
package seen

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/turntable-streams/turntable/topics"
)

// Limit is the size of the largest arguments that are shown everywhere, in bytes.
const Limit = 2 << 10

// Refusal is the reason with which an approval is refused.
const Refusal = "the arguments are longer than what was shown: read the whole request first, or repeat its digest"

// Whole reports whether arguments are shown everywhere.
func Whole(args topics.Raw) bool { return len(args) <= Limit }

// remembered is how many pairs of a caller and a request a Log keeps.
const remembered = 10_000

// Log knows which callers of a process were shown which requests. It forgets the pair that was used first at the limit: that caller
// must read the request again. Its methods are safe for concurrent use.
type Log struct{ pairs *lru.Cache[pair, struct{}] }

type pair struct{ caller, request string }

// NewLog returns an empty log.
func NewLog() *Log {
	pairs, _ := lru.New[pair, struct{}](remembered) // fails only for a limit below 1
	return &Log{pairs}
}

// Add notes that a caller was shown a whole request.
func (l *Log) Add(caller, request string) { l.pairs.Add(pair{caller, request}, struct{}{}) }

// Has reports whether a caller was shown a whole request.
func (l *Log) Has(caller, request string) bool { return l.pairs.Contains(pair{caller, request}) }
