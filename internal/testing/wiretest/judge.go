package wiretest

import (
	"maps"
	"slices"
)

// mayBeComplete reports whether there are enough ended turns for every message to have ended. It is a cheap check before a
// full judgement.
func (b *facts) mayBeComplete() bool {
	pending := map[string]bool{}
	for _, m := range b.messages {
		if m.accepted && !b.isDeadLettered(m.at) {
			pending[m.session+"\x00"+m.identity()] = true
		}
	}
	return len(b.endedTurns) >= len(pending)
}

// judgement checks the facts once and collects the violations.
type judgement struct {
	*facts
	expected map[Coord]Sent
	report   Report
	// dead are the dead-lettered inputs, used the inputs that had an effect.
	dead, used map[Coord]bool
}

// session has the facts of one session. Each list is in the order of its topic.
type session struct {
	name         string
	messages     []*message
	steps        []*step
	responses    []*thinkResponse
	calls        []*call
	toolMessages []*toolMessage
	sets         []*set
	results      []*toolResult
	outputs      []*outputRecord
	turns        []*turn // in the order in which they were opened
	cleared      bool    // by a tombstone or a purge
	purged       bool
}

// turn has the facts of one turn.
type turn struct {
	id           string
	message      *message
	steps        []*step
	calls        []*call
	toolMessages []*toolMessage
	sets         []*set
	outputs      []*outputRecord
}

// failed reports whether the turn ended in an error, so that results of its calls may be missing.
func (t *turn) failed() bool { return len(t.outputs) > 0 && t.outputs[0].isError }

func (b *facts) judge(known map[Coord]Sent) Report {
	j := &judgement{facts: b, expected: known, dead: map[Coord]bool{}, used: map[Coord]bool{}}
	j.report.Counts = b.counts
	j.report.Counts.Codes, j.report.Counts.Synthesised = map[string]int{}, map[string]int{}
	j.report.Violations, j.report.Hidden = slices.Clone(b.report.Violations), b.report.Hidden
	j.checkDeadLetters()
	sessions := j.sessions()
	for _, name := range slices.Sorted(maps.Keys(sessions)) {
		s := sessions[name]
		j.assignMessages(s)
		j.checkOutputs(s)
		j.checkOrder(s)
		j.checkChain(s)
		j.checkToolResults(s)
		j.checkNothingLost(s)
	}
	j.checkFates()
	j.report.sort()
	return j.report
}

// sessions groups the facts by session.
func (j *judgement) sessions() map[string]*session {
	all := map[string]*session{}
	of := func(name string) *session {
		if all[name] == nil {
			all[name] = &session{name: name}
		}
		return all[name]
	}
	for _, m := range j.messages {
		if m.session != "" {
			s := of(m.session)
			s.messages = append(s.messages, m)
		}
	}
	for _, v := range j.steps {
		s := of(v.session)
		s.steps = append(s.steps, v)
	}
	for _, v := range j.responses {
		s := of(v.session)
		s.responses = append(s.responses, v)
	}
	for _, v := range j.calls {
		s := of(v.session)
		s.calls = append(s.calls, v)
	}
	for _, v := range j.toolMessages {
		s := of(v.session)
		s.toolMessages = append(s.toolMessages, v)
	}
	for _, v := range j.sets {
		s := of(v.session)
		s.sets = append(s.sets, v)
	}
	for _, v := range j.results {
		s := of(v.session)
		s.results = append(s.results, v)
	}
	for _, v := range j.outputRecords {
		s := of(v.session)
		s.outputs = append(s.outputs, v)
	}
	for _, c := range j.controls {
		s := of(c.session)
		s.cleared = s.cleared || c.action == "clear" || c.action == "purge"
		s.purged = s.purged || c.action == "purge"
	}
	for _, s := range all {
		s.groupByTurn()
	}
	return all
}

// groupByTurn groups the records that the pipeline wrote by turn. Turns with steps are first, in the order of their first
// steps.
func (s *session) groupByTurn() {
	byID := map[string]*turn{}
	of := func(id string) *turn {
		if byID[id] == nil {
			byID[id] = &turn{id: id}
			s.turns = append(s.turns, byID[id])
		}
		return byID[id]
	}
	for _, v := range s.steps {
		t := of(v.origin.turn)
		t.steps = append(t.steps, v)
	}
	for _, v := range s.outputs {
		t := of(v.origin.turn)
		t.outputs = append(t.outputs, v)
	}
	for _, v := range s.calls {
		t := of(v.origin.turn)
		t.calls = append(t.calls, v)
	}
	for _, v := range s.toolMessages {
		t := of(v.origin.turn)
		t.toolMessages = append(t.toolMessages, v)
	}
	for _, v := range s.sets {
		t := of(v.origin.turn)
		t.sets = append(t.sets, v)
	}
}

// checkDeadLetters compares each dead letter with its original, and collects the dead-lettered inputs.
func (j *judgement) checkDeadLetters() {
	for _, l := range j.deadLetters {
		original, at := j.original(l)
		if original == nil {
			j.report.add(RuleLetter, l.at, "refers to %s, which is not an input that was read", l.from)
			continue
		}
		if original.nullKey != l.nullKey || original.key != l.key {
			j.report.add(RuleLetter, l.at, "has a different key than %s", at)
		}
		if !l.truncated && (original.nullValue != l.nullValue || original.value != l.value) {
			j.report.add(RuleLetter, l.at, "has a different value than %s", at)
		}
		if j.dead[at] {
			j.report.Counts.LetterRepeats++
			continue
		}
		j.dead[at] = true
		j.report.Counts.DeadLetters++
	}
}

// original returns the input that a dead letter refers to. If the input was sent through the loop topic, the dead letter may
// refer to the loop record.
func (j *judgement) original(l *deadLetter) (*inputRecord, Coord) {
	if s := j.inputs[l.from]; s != nil {
		return s, s.at
	}
	looped := j.loopRecords[l.from]
	if looped == nil {
		return nil, Coord{}
	}
	if looped.original != nil {
		if s := j.inputs[*looped.original]; s != nil {
			return s, s.at
		}
	}
	return nil, Coord{}
}
