package agent

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
)

// The bounds of what waits. Sizes are in bytes of JSON.
const (
	// queueLimit is the number of normal messages that may wait, and normalLimit their size. Urgent messages are limited by their size
	// only, urgentLimit, so that the row and a prompt with all of them fit into records.
	queueLimit  = 200
	normalLimit = 192 << 10
	urgentLimit = 384 << 10
	// mergeLimit is the size of the messages in one prompt.
	mergeLimit = normalLimit + urgentLimit
	// itemSize is what a message costs beside its text.
	itemSize    = 256
	notesLimit  = 50
	noteSize    = 16 << 10
	notesSize   = 48 << 10
	updateLimit = 48 << 10
	// rowLimit is the size of a row beyond which it accepts no message.
	rowLimit = 832 << 10
)

// prompt accepts a message, or tells the crew that it was dropped.
func (a *agent) prompt(c crewbody.Prompt) {
	if reason := a.accept(c); reason != "" {
		a.dropped(c.FromID, reason)
		return
	}
	a.deliver()
}

func (a *agent) dropped(from, reason string) {
	a.step.Send(a.crew(), crewbody.Dropped{AgentID: a.id(), FromID: cut(from, nameLimit), Reason: reason})
}

// accept puts a message into the queue. It returns why it did not. An urgent message is never refused because many messages wait, only
// if the urgent ones that wait, or the row, would be too large.
func (a *agent) accept(c crewbody.Prompt) (refusal string) {
	switch {
	case a.Terminated || !Live(a.State):
		return "the agent has ended"
	case len(c.FromID) > nameLimit:
		return "the ID of the sender is too long"
	case len(c.Blocks) > 0 && jsontext.Value(c.Blocks).Kind() != '[':
		return "the content blocks are not a list"
	}
	q := a.queue()
	class, limit := &q.Normal, normalLimit
	if c.Priority {
		class, limit = &q.Priority, urgentLimit
	}
	w := &Waiting{Text: c.Text, FromId: c.FromID, Blocks: c.Blocks}
	size := w.size()
	for _, other := range *class {
		size += other.size()
	}
	switch {
	case !c.Priority && len(q.Normal) >= queueLimit:
		return "too many messages wait for the agent"
	case size > limit || proto.Size(a.State)+w.size() > rowLimit:
		return "the messages that wait for the agent are too large"
	}
	*class = append(*class, w)
	return ""
}

func (a *agent) queue() *Queue {
	if a.Queue == nil {
		a.Queue = &Queue{}
	}
	return a.Queue
}

func (w *Waiting) size() int { return itemSize + jsonSize(w.Text) + len(w.FromId) + len(w.Blocks) }

// note adds a note of the system.
func (a *agent) note(c crewbody.Note) {
	a.answered(c)
	a.addNote(c.Text)
	a.deliver()
}

// addNote keeps the newest notes. The oldest ones are dropped, without a report: they answer what the agent has said long ago.
func (a *agent) addNote(text string) {
	if a.Terminated || !Live(a.State) {
		return
	}
	q := a.queue()
	q.Notes = append(q.Notes, cut(text, noteSize))
	size, first := 0, len(q.Notes)
	for first > 0 && len(q.Notes)-first < notesLimit {
		if size += jsonSize(q.Notes[first-1]); size > notesSize {
			break
		}
		first--
	}
	q.Notes = q.Notes[min(first, len(q.Notes)-1):]
}

// refresh keeps the newest CREW_UPDATE for the end of the turn. An agent whose turn has ended gets it at once as long as the crew takes
// the agent for running; after that it is not disturbed. An update that says what the agent knows replaces one that waits.
func (a *agent) refresh(c crewbody.Refresh) {
	if a.Turn == nil && (!a.Unreported || a.IdleMs == 0) || len(c.Digest) > nameLimit {
		return
	}
	q := a.queue()
	q.Refresh, q.Digest = cut(c.Text, updateLimit), c.Digest
	if c.Digest == a.Refreshed {
		q.Refresh, q.Digest = "", ""
	}
	a.deliver()
}

// clearQueue drops the messages that wait. If they have held back the report of an ended turn, idleAfter begins again.
func (a *agent) clearQueue(crewbody.ClearQueue) {
	a.drop("the queue of the agent was cleared")
	if a.Unreported && a.Process.GetReady() && a.Turn == nil {
		a.rest(true)
	}
}

// drop empties the queue, and tells the crew of every message in it.
func (a *agent) drop(reason string) {
	for _, w := range a.Queue.waits() {
		a.dropped(w.FromId, reason)
	}
	a.Queue = nil
}

// pause holds back what waits, or sends it.
func (a *agent) pause(c crewbody.Pause) {
	a.Paused = c.Paused
	a.deliver()
}

// waiting is the number of messages that wait.
func (s *State) waiting() int {
	n := len(s.Queue.GetPriority()) + len(s.Queue.GetNormal())
	if len(s.Queue.GetNotes()) > 0 {
		n++
	}
	return n
}

// merge makes one prompt of what waits, and takes it from the queue. What does not fit into a record with the rest stays: that can
// only be after the loss of a host, whose messages wait again. It returns nil if nothing waits.
func (a *agent) merge() (blocks []jsontext.Value, sent *Queue) {
	q := a.Queue
	a.Queue, sent = nil, &Queue{Notes: q.GetNotes()}
	var texts []string
	var more []jsontext.Value
	size := 0
	take := func(class []*Waiting) (taken, left []*Waiting) {
		n := 0
		for ; n < len(class); n++ {
			w := class[n]
			if size += w.size(); size > mergeLimit {
				break
			}
			texts = append(texts, w.Text)
			var list []jsontext.Value
			if json.Unmarshal(w.Blocks, &list) == nil {
				more = append(more, list...)
			}
		}
		return class[:n], class[n:]
	}
	var urgent, normal []*Waiting
	sent.Priority, urgent = take(q.GetPriority())
	texts = append(texts, q.GetNotes()...)
	sent.Normal, normal = take(q.GetNormal())
	if len(urgent)+len(normal) > 0 {
		a.Queue = &Queue{Priority: urgent, Normal: normal}
	}
	if q.GetRefresh() != "" && q.Digest != a.Refreshed {
		texts = append(texts, q.Refresh)
		a.Refreshed = q.Digest
	}
	if len(texts) == 0 {
		return nil, nil
	}
	return append(textBlock(strings.Join(texts, "\n")), more...), sent
}

func textBlock(text string) []jsontext.Value {
	block, err := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", strings.ToValidUTF8(text, "\uFFFD")})
	if err != nil {
		panic("crew: encode a text: " + err.Error())
	}
	return []jsontext.Value{block}
}

const (
	// sentKept is the size of the messages of an open turn that the row keeps once the process has said something.
	sentKept = 16 << 10
	// mostInterruptions is how many turns in succession may be interrupted by the loss of the host until the messages of the
	// turn are dropped: they may be why the host is lost.
	mostInterruptions = 3
)

const interruptedNote = "[System] Your last turn was interrupted: the host of your process was stopped. See what is done " +
	"already, then go on."

// begin notes that the process has said something about the turn.
func (t *Turn) begin() {
	if t == nil || t.Begun {
		return
	}
	t.Begun = true
	sent := t.Sent
	if sent == nil {
		return
	}
	if proto.Size(sent) <= sentKept {
		return
	}
	sent.Notes = nil
	for _, class := range [][]*Waiting{sent.Priority, sent.Normal} {
		for _, w := range class {
			w.Text, w.Blocks = "", nil
		}
	}
}

// takeBack keeps the prompt of a turn that the loss of the host has ended, for the next process. A process that has said nothing
// may not have got it: it is sent again. One that has may have done a part of it. Then an agent that continues its session is
// told that it was interrupted, and knows what it has done and was asked; another one is asked again. A message that cannot be
// sent again is reported as dropped.
func (a *agent) takeBack() {
	t := a.Turn
	if t == nil || t.Cancelled {
		return
	}
	const reason = "the host was stopped during the turn"
	if a.Interrupted++; a.Interrupted > mostInterruptions {
		if t.First {
			a.dropped(a.ParentId, reason)
		}
		for _, w := range t.Sent.waits() {
			a.dropped(w.FromId, reason)
		}
		return
	}
	a.FirstDue = a.FirstDue || t.First && !t.Begun
	if t.Begun && (a.CanLoad || !t.First) { // another session begins with the first prompt anyway
		defer a.addNote(interruptedNote)
	}
	sent := t.Sent
	if sent == nil || t.Begun && a.CanLoad {
		return
	}
	q := a.queue()
	again := func(class []*Waiting) (kept []*Waiting) {
		for _, w := range class {
			if w.Text != "" || len(w.Blocks) > 0 {
				kept = append(kept, w)
			} else {
				a.dropped(w.FromId, reason)
			}
		}
		return kept
	}
	q.Priority = append(again(sent.Priority), q.Priority...)
	q.Normal = append(again(sent.Normal), q.Normal...)
	notes := q.Notes
	q.Notes = nil
	for _, text := range append(sent.Notes, notes...) {
		a.addNote(text)
	}
}

// waits returns the messages of a queue.
func (q *Queue) waits() []*Waiting { return slices.Concat(q.GetPriority(), q.GetNormal()) }
