package wiretest

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// book holds the facts of all records read so far. Its size grows with the number of records, not with their size.
type book struct {
	names      Names
	partitions map[string]int32
	once       bool // repeats are violations

	counts  Counts
	found   Report // violations that a single record shows
	sources map[Coord]*source
	inLoop  map[Coord]*source
	written map[string]writing // records of ours by topic and id

	messages []*message
	steps    []*step
	thoughts []*thought
	calls    []*call
	tools    []*toolMessage
	sets     []*set
	returned []*returned
	endings  []*ending
	letters  []*letter
	lettered map[Coord]bool // what letters name: inputs, and records of the loop
	controls []control
	routes   map[string][]route

	outputs map[string]int // distinct outputs by session
	turns   map[string]bool
}

type writing struct {
	at      Coord
	untimed digest
}

type route struct {
	bytes   digest
	request string
}

func newBook(n Names, once bool) *book {
	return &book{
		names: n, partitions: map[string]int32{}, once: once, sources: map[Coord]*source{}, inLoop: map[Coord]*source{},
		written: map[string]writing{}, routes: map[string][]route{}, outputs: map[string]int{}, turns: map[string]bool{},
		lettered: map[Coord]bool{},
	}
}

// observe takes the facts of a record. Records of a partition come in order.
func (b *book) observe(r *kgo.Record) {
	b.counts.Records++
	n := b.names
	switch r.Topic {
	case n.DeadLetters:
		b.deadLetter(r)
		return
	case n.Loop:
		s := readSource(r)
		b.inLoop[s.at] = &s
		if b.lettered[s.at] && s.viaLoop != nil {
			b.lettered[*s.viaLoop] = true
		}
		return
	case n.Enriched, n.ToolUse, n.AllComplete, n.MessageOutput:
		b.ours(r)
		return
	}
	id, marked := header(r, headerID)
	if _, ours := originOf(id); marked && ours {
		if r.Topic == n.ToolUseDLQ || r.Topic == n.MessageInput && isToolMessage(r) {
			b.ours(r)
			return
		}
	}
	s := readSource(r)
	b.sources[s.at] = &s
	switch r.Topic {
	case n.MessageInput:
		m := readMessage(r, b.partitions[r.Topic])
		b.messages = append(b.messages, &m)
	case n.Think:
		t := readThought(r)
		b.thoughts = append(b.thoughts, &t)
		if t.tombstone {
			b.controls = append(b.controls, control{session: t.session, action: "clear"})
		}
	case n.ToolUseResult:
		v := readReturned(r)
		b.returned = append(b.returned, &v)
	case n.ReplyTo:
		b.readRoute(r)
	case n.SessionControl:
		if o, err := objectOf(r.Value); err == nil {
			if a := o.text("action"); a != nil {
				b.controls = append(b.controls, control{session: string(r.Key), action: *a})
			}
		}
	}
}

func (b *book) readRoute(r *kgo.Record) {
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

// ours checks the form of a record that the pipeline wrote, and takes its facts when its id is new.
func (b *book) ours(r *kgo.Record) {
	at := coordOf(r)
	if n := b.partitions[r.Topic]; n > 0 && (r.Key == nil || home(r.Key, n) != r.Partition) {
		b.found.add(RuleWire, at, "not on the partition of its key")
	}
	id, _ := header(r, headerID)
	from, ok := originOf(id)
	if !ok {
		b.found.add(RuleNoID, at, "header %s is missing or not turn/step/kind/index", headerID)
		return
	}
	again := digestOf(r.Key, untimed(r.Value))
	name := r.Topic + "\x00" + from.id
	if first, seen := b.written[name]; seen {
		switch {
		case first.untimed != again:
			b.found.add(RuleRepeat, at, "differs from %s beyond its times", first.at)
		case b.once:
			b.found.add(RuleAgain, at, "repeats %s", first.at)
		}
		b.counts.Repeats++
		return
	}
	b.written[name] = writing{at: at, untimed: again}
	o, err := objectOf(r.Value)
	if err != nil {
		b.found.add(RuleWire, at, "no readable object")
		return
	}
	b.take(r, at, from, o)
}

func (b *book) take(r *kgo.Record, at Coord, from origin, o object) {
	n, session := b.names, string(r.Key)
	switch r.Topic {
	case n.Enriched:
		b.shape(r, at, o, enrichedShape, true)
		s := readStep(at, from, session, o)
		b.steps = append(b.steps, &s)
		for _, m := range o.list("history") {
			if isNull(m) {
				b.found.add(RuleWire, at, "null in history")
			}
		}
	case n.ToolUse, n.ToolUseDLQ:
		b.shape(r, at, o, itemShape, false)
		c := readOurCall(at, from, session, o)
		c.rejected = r.Topic == n.ToolUseDLQ
		b.calls = append(b.calls, &c)
	case n.AllComplete:
		b.shape(r, at, o, setShape, true)
		if string(o.raw("emitted")) != "true" {
			b.found.add(RuleWire, at, "emitted is not true")
		}
		s := readSet(at, from, session, o)
		b.sets = append(b.sets, &s)
	case n.MessageInput:
		b.shape(r, at, o, toolMessageShape, true)
		t, problem := readToolMessage(at, from, session, o)
		if problem != "" {
			b.found.add(RuleWire, at, "%s", problem)
		}
		b.tools = append(b.tools, &t)
	case n.MessageOutput:
		b.shape(r, at, o, outputShape, true)
		e, problem := readEnding(at, from, session, o)
		if problem != "" {
			b.found.add(RuleWire, at, "%s", problem)
		}
		b.endings = append(b.endings, &e)
		b.outputs[session]++
		b.turns[from.turn] = true
	}
}

// shape checks the form. Records of the pipeline contain their key as session_id, and a timestamp.
func (b *book) shape(r *kgo.Record, at Coord, o object, shape []field, own bool) {
	if problem := misshapen(r.Value, shape); problem != "" {
		b.found.add(RuleWire, at, "%s", problem)
	}
	if !own {
		return
	}
	if s := o.text("session_id"); s == nil || *s != string(r.Key) {
		b.found.add(RuleWire, at, "session_id is not the key")
	}
	if badStamp(o) {
		b.found.add(RuleWire, at, "timestamp is not an instant with Z and 0, 3, 6 or 9 digits")
	}
}

func (b *book) deadLetter(r *kgo.Record) {
	at := coordOf(r)
	from, ok := readCoord(r)
	if reason, _ := header(r, headerReason); reason == "" || !ok {
		b.found.add(RuleLetter, at, "error.* headers are missing")
		return
	}
	if group, _ := header(r, headerGroup); group != b.names.Group {
		b.found.add(RuleLetter, at, "%s is not the group", headerGroup)
	}
	l := letter{
		at: at, from: from, key: digestOf(r.Key), value: digestOf(r.Value), nullKey: r.Key == nil, nullValue: r.Value == nil,
	}
	_, l.truncated = header(r, headerTruncated)
	b.letters = append(b.letters, &l)
	b.lettered[from] = true
	if looped := b.inLoop[from]; looped != nil && looped.viaLoop != nil {
		b.lettered[*looped.viaLoop] = true
	}
}

// dead reports whether a letter names the input. A letter about a record of the loop may be read before that record.
func (b *book) dead(at Coord) bool { return b.lettered[at] }
