package turn

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
)

// The encoded results of a step's calls are appended to one field in order of arrival. They are therefore written once,
// and a new result does not need the earlier ones loaded. They are decoded when the step ends. A few small results are
// stored in their calls instead.

// callsInline is the maximum size in bytes of the results that are stored in the calls.
const callsInline = 1 << 10

// keepResult ends a call with its result. The result of the last open call is not encoded, because the step ends.
func keepResult(t *turnrow.OpenTurn, c *turnrow.Call, r *turnrow.Result) {
	inline := proto.Size(r)
	for _, c := range t.Calls {
		inline += proto.Size(c.Result)
	}
	if countOpenCalls(t) == 1 || inline <= callsInline {
		c.Result = r
		return
	}
	before := len(t.Results)
	raw, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(t.Results, r)
	if err != nil {
		panic(fmt.Errorf("%w: encode a result", errBroken))
	}
	t.Results = raw
	c.ResultAt, c.ResultLength = uint32(lengthOf(t.ResultsParts)+before), uint32(len(raw)-before)
}

// dropLastResult opens c again, which must be the call that ended last.
func dropLastResult(t *turnrow.OpenTurn, c *turnrow.Call) {
	t.Results = t.Results[:len(t.Results)-int(c.ResultLength)]
	c.Result, c.ResultAt, c.ResultLength = nil, 0, 0
}

// collectResults decodes the results into their calls at the end of the step. It reports false if they cannot
// be read.
func (s *transition) collectResults() bool {
	t := s.row.Turn
	if s.load(results); s.err != nil {
		return false
	}
	for _, c := range t.Calls {
		if c.Result = resultOfCall(t, c); c.Result == nil {
			panic(fmt.Errorf("%w: a result cannot be read", errBroken))
		}
		c.ResultAt, c.ResultLength = 0, 0
	}
	t.Results = nil
	return true
}

// resultOfCall returns the result of a call, or nil if it is not loaded.
func resultOfCall(t *turnrow.OpenTurn, c *turnrow.Call) *turnrow.Result {
	if c.Result != nil {
		return c.Result
	}
	at := int(c.ResultAt) - lengthOf(t.ResultsParts)
	end := at + int(c.ResultLength)
	r := &turnrow.Result{}
	if at < 0 || end > len(t.Results) || proto.Unmarshal(t.Results[at:end], r) != nil {
		return nil
	}
	return r
}

func countOpenCalls(t *turnrow.OpenTurn) (open int) {
	for _, c := range t.Calls {
		if !ended(c) {
			open++
		}
	}
	return open
}
