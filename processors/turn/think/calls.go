package think

import (
	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
)

// callReader reads the calls of a step's reply, in order: a call gets an ID that no other call of the turn has, and an object as
// its input. Nothing changes in a call that is read again.
type callReader struct {
	ids  *toolcall.IDs
	cut  bool // the input of a call ends too early
	good bool // a call can run
}

func callsOf(s Step) *callReader { return &callReader{ids: toolcall.New(s.Key, s.Messages)} }

// read returns a call as it is read; nil for none.
func (r *callReader) read(c *Call) *Call {
	if c == nil {
		return nil
	}
	read := *c
	read.ID = r.ids.Next(c.ID)
	if c.Input != nil {
		a := toolcall.Read(string(c.Input))
		if read.Input = a.Input; read.Invalid == "" {
			read.Invalid = a.Problem
		}
		r.cut = r.cut || a.Cut
	}
	r.good = r.good || read.Invalid == ""
	return &read
}

// err returns an error if there is nothing but the beginning of a call.
func (r *callReader) err() error {
	if r.cut && !r.good {
		return errResponse
	}
	return nil
}

// read returns the reply of a model with its calls read.
func (r Reply) read(s Step) (Reply, error) {
	if r.empty() {
		return Reply{}.with(r.usage()), ErrEmpty
	}
	calls, blocks := callsOf(s), make([]Block, len(r.Blocks))
	for i, b := range r.Blocks {
		blocks[i] = Block{Text: b.Text, Call: calls.read(b.Call)}
	}
	r.Blocks = blocks
	return r, calls.err()
}
