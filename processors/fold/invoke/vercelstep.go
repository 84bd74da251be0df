package invoke

import "github.com/turntable-streams/turntable/topics"

// call is a tool call in the Vercel stream.
type call struct {
	name string
	// step is the step that shows the call, 0 if the client's message does not have it.
	step int
	args topics.Raw // nil for a call with a result
}

// add adds a part. The first part after a pause begins another step.
func (p *projection) add(o object) {
	if p.paused {
		p.nextStep()
	}
	p.parts = append(p.parts, o.value())
}

// update adds a part that changes a part of an earlier step.
func (p *projection) update(o object) { p.parts = append(p.parts, o.value()) }

// nextStep ends the step, if there is one, and begins another. The reader of the ai package has then forgotten the open
// blocks.
func (p *projection) nextStep() {
	if p.stepping {
		p.update(part("finish-step"))
	}
	p.update(part("start-step"))
	p.paused, p.stepping = false, true
	p.step++
	p.cutBlocks()
}

func (p *projection) cutBlocks() {
	for _, open := range []map[ident]bool{p.open, p.thinking} {
		for id := range open {
			open[id] = false
		}
	}
}

// another begins another response, for a turn that has continued. With same, the client adds it to the message that has the
// calls of the turn.
func (p *projection) another(same bool) {
	p.stepping, p.paused, p.reason = false, true, nil
	p.cutBlocks()
	if same {
		return
	}
	for id, c := range p.calls {
		c.step = 0
		p.calls[id] = c
	}
}

// continues notes that the turn continues after a pause.
func (p *projection) continues() {
	if p.reason != nil && *p.reason == stopPaused {
		p.reason, p.paused = nil, true
	}
}
