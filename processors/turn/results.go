package turn

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// The results of a step's calls stand one behind the other, as they came: so they are written once, and no result needs
// those before it. They are read when the step is over. A few small ones stand in their calls.

// callsInline is how many bytes of results may stand in the calls.
const callsInline = 1 << 10

func (c *Call) ended() bool { return c.Result != nil || c.ResultLength > 0 }

// keepResult ends a call with its result. That of the last open call stays as it is: the step is over.
func (t *OpenTurn) keepResult(c *Call, r *Result) {
	open, inline := 0, r.bound()
	for _, c := range t.Calls {
		if !c.ended() {
			open++
		}
		inline += c.Result.bound()
	}
	if open == 1 || inline <= callsInline {
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

// dropLastResult opens the call again that was ended last.
func (t *OpenTurn) dropLastResult(c *Call) {
	t.Results = t.Results[:len(t.Results)-int(c.ResultLength)]
	c.Result, c.ResultAt, c.ResultLength = nil, 0, 0
}

// collectResults gives the calls their results, to be read and replaced: the step is over. It reports false where they
// stand apart and are not loaded.
func (s *session) collectResults() bool {
	t := s.row.Turn
	if len(t.ResultsParts) > 0 {
		s.starved = true
		return false
	}
	for _, c := range t.Calls {
		if c.Result = t.result(c); c.Result == nil {
			panic(fmt.Errorf("%w: a result cannot be read", errBroken))
		}
		c.ResultAt, c.ResultLength = 0, 0
	}
	t.Results = nil
	return true
}

// result is how a call ended, nil where that is not at hand.
func (t *OpenTurn) result(c *Call) *Result {
	if c.Result != nil {
		return c.Result
	}
	at := int(c.ResultAt) - lengthOf(t.ResultsParts)
	end := at + int(c.ResultLength)
	r := &Result{}
	if at < 0 || end > len(t.Results) || proto.Unmarshal(t.Results[at:end], r) != nil {
		return nil
	}
	return r
}
