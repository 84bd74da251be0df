package wiretest

import (
	"maps"
	"slices"
)

// plausible reports, without a full judgement, whether every message may have ended.
func (b *book) plausible() bool {
	owed := map[string]bool{}
	for _, m := range b.messages {
		if m.accepted && !b.dead(m.at) {
			owed[m.session+"\x00"+m.identity()] = true
		}
	}
	return len(b.turns) >= len(owed)
}

// judgement is one run over the book.
type judgement struct {
	*book
	known  map[Coord]Sent
	report Report
	// dead are the inputs that stand on the dead-letter topic; used those that had an effect.
	dead, used map[Coord]bool
}

// session is the facts of one session, each list in the order of its topic.
type session struct {
	name     string
	messages []*message
	steps    []*step
	thoughts []*thought
	calls    []*call
	tools    []*toolMessage
	sets     []*set
	returned []*returned
	endings  []*ending
	turns    []*turn // in the order they were opened
	cleared  bool    // by a tombstone or a purge
	purged   bool
}

// turn is the facts of one turn.
type turn struct {
	id      string
	message *message
	steps   []*step
	calls   []*call
	tools   []*toolMessage
	sets    []*set
	endings []*ending
}

// failed reports whether the turn ended in an error, so that results of its calls may be missing.
func (t *turn) failed() bool { return len(t.endings) > 0 && t.endings[0].isError }

func (b *book) judge(known map[Coord]Sent) Report {
	j := &judgement{book: b, known: known, dead: map[Coord]bool{}, used: map[Coord]bool{}}
	j.report.Counts = b.counts
	j.report.Counts.Codes, j.report.Counts.Synthesised = map[string]int{}, map[string]int{}
	j.report.Violations, j.report.Hidden = slices.Clone(b.found.Violations), b.found.Hidden
	j.deadLetters()
	sessions := j.sessions()
	for _, name := range slices.Sorted(maps.Keys(sessions)) {
		s := sessions[name]
		j.assign(s)
		j.ends(s)
		j.order(s)
		j.chain(s)
		j.toolResults(s)
		j.conserve(s)
	}
	j.fates()
	j.report.sort()
	return j.report
}

// sessions deals the facts out by session.
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
	for _, v := range j.thoughts {
		s := of(v.session)
		s.thoughts = append(s.thoughts, v)
	}
	for _, v := range j.calls {
		s := of(v.session)
		s.calls = append(s.calls, v)
	}
	for _, v := range j.tools {
		s := of(v.session)
		s.tools = append(s.tools, v)
	}
	for _, v := range j.sets {
		s := of(v.session)
		s.sets = append(s.sets, v)
	}
	for _, v := range j.returned {
		s := of(v.session)
		s.returned = append(s.returned, v)
	}
	for _, v := range j.endings {
		s := of(v.session)
		s.endings = append(s.endings, v)
	}
	for _, c := range j.controls {
		s := of(c.session)
		s.cleared = s.cleared || c.action == "clear" || c.action == "purge"
		s.purged = s.purged || c.action == "purge"
	}
	for _, s := range all {
		s.dealTurns()
	}
	return all
}

// dealTurns deals the facts of ours out by turn: turns with steps first, in the order of their first step.
func (s *session) dealTurns() {
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
	for _, v := range s.endings {
		t := of(v.origin.turn)
		t.endings = append(t.endings, v)
	}
	for _, v := range s.calls {
		t := of(v.origin.turn)
		t.calls = append(t.calls, v)
	}
	for _, v := range s.tools {
		t := of(v.origin.turn)
		t.tools = append(t.tools, v)
	}
	for _, v := range s.sets {
		t := of(v.origin.turn)
		t.sets = append(t.sets, v)
	}
}

// deadLetters checks each letter against its original, and notes which inputs are dead.
func (j *judgement) deadLetters() {
	for _, l := range j.letters {
		original, at := j.original(l)
		if original == nil {
			j.report.add(RuleLetter, l.at, "names %s, which is no input that was read", l.from)
			continue
		}
		if original.nullKey != l.nullKey || original.key != l.key {
			j.report.add(RuleLetter, l.at, "has another key than %s", at)
		}
		if !l.truncated && (original.nullValue != l.nullValue || original.value != l.value) {
			j.report.add(RuleLetter, l.at, "has other bytes than %s", at)
		}
		if j.dead[at] {
			j.report.Counts.LetterRepeats++
			continue
		}
		j.dead[at] = true
		j.report.Counts.DeadLetters++
	}
}

// original is the input a letter is about: what went through the loop is known by the record it stands for.
func (j *judgement) original(l *letter) (*source, Coord) {
	if s := j.sources[l.from]; s != nil {
		return s, s.at
	}
	looped := j.inLoop[l.from]
	if looped == nil {
		return nil, Coord{}
	}
	if looped.viaLoop != nil {
		if s := j.sources[*looped.viaLoop]; s != nil {
			return s, s.at
		}
	}
	return nil, Coord{}
}
