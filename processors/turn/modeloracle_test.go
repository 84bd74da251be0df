package turn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/rows"
)

// The oracle knows what a session must do: it is written from the promises and the documented rules, not from the
// transition. For every event it says which outputs follow, by ID and content. At a small row limit it accepts that a
// message, a result or a route finds no room, because the promises do not say how large a row is.

type oracle struct {
	*model
	belief
	known   *memory
	want    []string
	purging bool
	// What the event under judgement led to: outputs by ID, those that say that something is too large, and the records
	// that were given up.
	got     map[string]string
	letters []deadLetter
}

// belief is what the oracle thinks of a session. Its records are never changed in place.
type belief struct {
	// unfinished messages in the order in which they were accepted. The first one's turn is open.
	unfinished []acceptedMessage
	step       int // of the open turn
	thinking   bool
	input      string // of the open step
	before     string // the history that it was asked with
	deadline   time.Time
	calls      []expectedCall // of the open step, once the model has asked for tools
	said       *string        // the conversation after the last response of the open turn
	history    string
	cost       string
	held       []heldRecord
	named      map[string]replyRoute
	unnamed    []replyRoute
	used       []int64 // when unnamed routes were used whose tombstones are to come
}

type acceptedMessage struct {
	turn    string
	request string
	input   string
	stamp   int64
	route   *replyRoute
	meantChannel
}

type expectedCall struct {
	id, name *string
	outcome  string // "" while it is open
	// waits for its gate; until is when it times out, zero for the deadline of the step.
	waits  bool
	until  time.Time
	edited bool
}

// heldRecord is one that came early. turn and step are those that it names; one that names none belongs to the turn that
// was open when it came.
type heldRecord struct {
	record *modelRecord
	turn   string
	step   int
	named  bool
	call   string // the tool_use_id of a result, the ID of its call where it names one
	callID string
	// gate is the ID of the call of an outcome, and seen says that its step is open.
	gate string
	seen bool
}

func newOracle(m *model) oracle {
	return oracle{
		model: m, known: &memory{entries: map[string]int64{}},
		belief: belief{history: "[]", cost: "none", named: map[string]replyRoute{}},
	}
}

func (b belief) clone() belief {
	b.unfinished, b.calls, b.held = slices.Clone(b.unfinished), slices.Clone(b.calls), slices.Clone(b.held)
	b.named, b.unnamed, b.used = maps.Clone(b.named), slices.Clone(b.unnamed), slices.Clone(b.used)
	return b
}

// judgeEvent says what an event must lead to and compares.
func (o *oracle) judgeEvent(r *modelRecord, es effects) {
	o.tb.Helper()
	o.want, o.got, o.letters = nil, map[string]string{}, nil
	var got, ends []string
	for _, e := range es {
		switch e := e.(type) {
		case emit:
			said := o.published[e.ID].text
			text := e.ID + ": " + said
			if got = append(got, text); len(got) <= 8 {
				o.logf("      -> %s", text)
			}
			o.got[e.ID] = said
			if _, ok := e.Value.(answered); ok {
				ends = append(ends, text)
			}
		case deadLetter:
			o.letters = append(o.letters, e)
		}
	}
	if more := len(got) - 8; more > 0 {
		o.logf("      -> and %d more", more)
	}
	o.dropHeld()
	o.predict(r)
	o.giveUp()
	wantEnds := slices.DeleteFunc(slices.Clone(o.want), func(s string) bool { return !strings.Contains(s, "/output/0: ") })
	order := slices.Equal(wantEnds, ends) || o.Small
	slices.Sort(got)
	slices.Sort(o.want)
	if !slices.Equal(got, o.want) {
		o.failf("%s@%d leads to\n%s\nbut must lead to\n%s", r.topic, r.offset, lines(got, o.want), lines(o.want, got))
	}
	if !order {
		o.failf("outputs are out of order: %s, want %s", ends, wantEnds)
	}
	for _, text := range got {
		id, _, _ := strings.Cut(text, ": ")
		if o.known.has("emitted/"+id, 0) {
			o.failf("%s is written again", id)
		}
		if turn, _ := turnOf(id); !o.refused[turn] {
			o.known.add("emitted/"+id, 1)
		}
	}
	if deadline, ok := rows.Deadline(o.row); len(o.unfinished) > 0 && (!ok || deadline > o.due().UnixMilli()) {
		o.failf("the turn must go on at %s, the row's deadline is %s", o.due(), time.UnixMilli(deadline).UTC())
	}
}

// lines are texts, one a line. Of a long one that the other list has in other words only that place is shown.
func lines(texts, other []string) string {
	if len(texts) == 0 {
		return "    nothing"
	}
	var b strings.Builder
	for _, t := range texts {
		id, _, _ := strings.Cut(t, ": ")
		from := 0
		for _, o := range other {
			if strings.HasPrefix(o, id+": ") {
				for from < min(len(t), len(o)) && t[from] == o[from] {
					from++
				}
			}
		}
		switch {
		case from == len(t):
			t = fmt.Sprintf("%.90s (the same)", t)
		case from > 200:
			t = t[:90] + " … " + t[from-80:]
		}
		fmt.Fprintf(&b, "    %s\n", t)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (o *oracle) expect(turn string, step int, kind string, index int, text string) {
	o.want = append(o.want, fmt.Sprintf("%s/%d/%s/%d: %s", turn, step, kind, index, text))
}

// predict applies an event to the belief.
func (o *oracle) predict(r *modelRecord) {
	if r.topic == deadlineTopic {
		o.time()
		return
	}
	record := r.event.source()
	cause := "cause/" + r.topic + "/" + record.Cause
	if o.remembers(cause) {
		return
	}
	if o.happen(r, record.Own) {
		o.known.add(cause, o.now.UnixMilli())
	}
}

// happen reports whether the record changed the session: a repeat of it changes nothing more.
func (o *oracle) happen(r *modelRecord, own bool) bool {
	switch meant := r.meant.(type) {
	case meantMessage:
		return o.message(r, meant)
	case meantResponse:
		return o.respond(r, meant)
	case meantFailure:
		return o.thinkFails(r, meant)
	case meantResult:
		return o.result(r, meant)
	case meantOutcome:
		return o.outcome(r, meant)
	case meantRoute:
		return o.routed(r, meant)
	case meantTombstone:
		if o.noRoom() {
			return false
		}
		if r.topic == "reply-to" {
			return !own && o.withdraw()
		}
		o.history, o.cost = "[]", "none" // an open turn goes on with its own conversation
		return true
	case meantControl:
		return !o.noRoom() && o.control(meant)
	case meantReport:
		return false
	case meantIgnored:
		return false
	default:
		panic(r.topic)
	}
}

// remembers reports whether something was seen and is not older than what a session remembers.
func (o *oracle) remembers(key string) bool {
	return o.known.has(key, o.now.Add(-o.rules.RememberFor).UnixMilli()+1)
}
