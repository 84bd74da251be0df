package wiretest

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// facts are the facts about all records read so far. Their size grows with the number of records, not with their size.
type facts struct {
	names       Names
	partitions  map[string]int32
	exactlyOnce bool // a repeat is a violation

	counts      Counts
	report      Report // violations that can be seen in a single record
	inputs      map[Coord]*inputRecord
	loopRecords map[Coord]*inputRecord
	firstByID   map[string]firstRecord // the first record of the pipeline with an ID, by topic and ID

	messages      []*message
	steps         []*step
	responses     []*thinkResponse
	calls         []*call
	toolMessages  []*toolMessage
	sets          []*set
	results       []*toolResult
	outputRecords []*outputRecord
	deadLetters   []*deadLetter
	deadLettered  map[Coord]bool // inputs and loop records that dead letters refer to
	controls      []control
	routes        map[string][]route

	outputsBySession map[string]int // distinct outputs by session
	endedTurns       map[string]bool
}

type firstRecord struct {
	at     Coord
	digest digest
}

type route struct {
	bytes   digest
	request string
}

func newFacts(n Names, once bool) *facts {
	return &facts{
		names: n, partitions: map[string]int32{}, exactlyOnce: once, inputs: map[Coord]*inputRecord{}, loopRecords: map[Coord]*inputRecord{},
		firstByID: map[string]firstRecord{}, routes: map[string][]route{}, outputsBySession: map[string]int{}, endedTurns: map[string]bool{},
		deadLettered: map[Coord]bool{},
	}
}

// observe adds the facts of a record. The records of a partition must be observed in order.
func (b *facts) observe(r *kgo.Record) {
	b.counts.Records++
	n := b.names
	switch r.Topic {
	case n.DeadLetters:
		b.observeDeadLetter(r)
		return
	case n.Loop:
		s := readSource(r)
		b.loopRecords[s.at] = &s
		if b.deadLettered[s.at] && s.original != nil {
			b.deadLettered[*s.original] = true
		}
		return
	case n.Enriched, n.ToolUse, n.AllComplete, n.MessageOutput:
		b.observeWritten(r)
		return
	}
	id, marked := header(r, headerID)
	if _, ok := originOf(id); marked && ok {
		if r.Topic == n.ToolUseDLQ || r.Topic == n.MessageInput && isToolMessage(r) {
			b.observeWritten(r)
			return
		}
	}
	s := readSource(r)
	b.inputs[s.at] = &s
	switch r.Topic {
	case n.MessageInput:
		m := readMessage(r, b.partitions[r.Topic])
		b.messages = append(b.messages, &m)
	case n.Think:
		t := readThinkResponse(r)
		b.responses = append(b.responses, &t)
		if t.tombstone {
			b.controls = append(b.controls, control{session: t.session, action: "clear"})
		}
	case n.ToolUseResult:
		v := readToolResult(r)
		b.results = append(b.results, &v)
	case n.ReplyTo:
		b.observeRoute(r)
	case n.SessionControl:
		if o, err := objectOf(r.Value); err == nil {
			if a := o.text("action"); a != nil {
				b.controls = append(b.controls, control{session: string(r.Key), action: *a})
			}
		}
	}
}

func (b *facts) observeRoute(r *kgo.Record) {
	o, err := objectOf(r.Value)
	if err != nil {
		return
	}
	t := route{bytes: digestOf(compact(r.Value))}
	if id := o.text("request_id"); id != nil {
		t.request = *id
	}
	b.routes[string(r.Key)] = append(b.routes[string(r.Key)], t)
}

func isToolMessage(r *kgo.Record) bool {
	o, err := objectOf(r.Value)
	if err != nil {
		return false
	}
	role := o.text("role")
	return role != nil && *role == "tool"
}

// observeWritten checks the form of a record that the pipeline wrote, and adds its facts if its ID is new.
func (b *facts) observeWritten(r *kgo.Record) {
	at := coordOf(r)
	if n := b.partitions[r.Topic]; n > 0 && (r.Key == nil || partitionOf(r.Key, n) != r.Partition) {
		b.report.add(RuleWire, at, "not on the partition of its key")
	}
	id, _ := header(r, headerID)
	from, ok := originOf(id)
	if !ok {
		b.report.add(RuleNoID, at, "header %s is missing or not turn/step/kind/index", headerID)
		return
	}
	again := digestOf(r.Key, withoutTimes(r.Value))
	name := r.Topic + "\x00" + from.id
	if first, seen := b.firstByID[name]; seen {
		switch {
		case first.digest != again:
			b.report.add(RuleRepeat, at, "differs from %s beyond its times", first.at)
		case b.exactlyOnce:
			b.report.add(RuleAgain, at, "repeats %s", first.at)
		}
		b.counts.Repeats++
		return
	}
	b.firstByID[name] = firstRecord{at: at, digest: again}
	o, err := objectOf(r.Value)
	if err != nil {
		b.report.add(RuleWire, at, "not a valid JSON object")
		return
	}
	b.observeByTopic(r, at, from, o)
}

func (b *facts) observeByTopic(r *kgo.Record, at Coord, from origin, o object) {
	n, session := b.names, string(r.Key)
	switch r.Topic {
	case n.Enriched:
		b.checkShape(r, at, o, enrichedShape, true)
		s := readStep(at, from, session, o)
		b.steps = append(b.steps, &s)
		for _, m := range o.list("history") {
			if isNull(m) {
				b.report.add(RuleWire, at, "null in history")
			}
		}
	case n.ToolUse, n.ToolUseDLQ:
		b.checkShape(r, at, o, itemShape, false)
		c := readCallRecord(at, from, session, o)
		c.rejected = r.Topic == n.ToolUseDLQ
		b.calls = append(b.calls, &c)
	case n.AllComplete:
		b.checkShape(r, at, o, setShape, true)
		if string(o.raw("emitted")) != "true" {
			b.report.add(RuleWire, at, "emitted is not true")
		}
		s := readSet(at, from, session, o)
		b.sets = append(b.sets, &s)
	case n.MessageInput:
		b.checkShape(r, at, o, toolMessageShape, true)
		t, problem := readToolMessage(at, from, session, o)
		if problem != "" {
			b.report.add(RuleWire, at, "%s", problem)
		}
		b.toolMessages = append(b.toolMessages, &t)
	case n.MessageOutput:
		b.checkShape(r, at, o, outputShape, true)
		e, problem := readOutput(at, from, session, o)
		if problem != "" {
			b.report.add(RuleWire, at, "%s", problem)
		}
		b.outputRecords = append(b.outputRecords, &e)
		b.outputsBySession[session]++
		b.endedTurns[from.turn] = true
	}
}

// checkShape checks the form of a record. With own, the record must also contain its key as session_id, and a timestamp.
func (b *facts) checkShape(r *kgo.Record, at Coord, o object, shape []field, own bool) {
	if problem := shapeProblem(r.Value, shape); problem != "" {
		b.report.add(RuleWire, at, "%s", problem)
	}
	if !own {
		return
	}
	if s := o.text("session_id"); s == nil || *s != string(r.Key) {
		b.report.add(RuleWire, at, "session_id is not the key")
	}
	if hasInvalidTimestamp(o) {
		b.report.add(RuleWire, at, "timestamp is not an instant with Z and 0, 3, 6 or 9 digits")
	}
}

func (b *facts) observeDeadLetter(r *kgo.Record) {
	at := coordOf(r)
	from, ok := readCoord(r)
	if reason, _ := header(r, headerReason); reason == "" || !ok {
		b.report.add(RuleLetter, at, "error.* headers are missing")
		return
	}
	if group, _ := header(r, headerGroup); group != b.names.Group {
		b.report.add(RuleLetter, at, "%s is not the group", headerGroup)
	}
	l := deadLetter{
		at: at, from: from, key: digestOf(r.Key), value: digestOf(r.Value), nullKey: r.Key == nil, nullValue: r.Value == nil,
	}
	_, l.truncated = header(r, headerTruncated)
	b.deadLetters = append(b.deadLetters, &l)
	b.deadLettered[from] = true
	if looped := b.loopRecords[from]; looped != nil && looped.original != nil {
		b.deadLettered[*looped.original] = true
	}
}

// isDeadLettered reports whether a dead letter refers to the input. A dead letter about a loop record may be read before
// that record.
func (b *facts) isDeadLettered(at Coord) bool { return b.deadLettered[at] }
