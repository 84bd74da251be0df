package crewhttp

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/permission"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// The types of events that the door does more with than to show them.
const (
	textEvent     = "agent:text"
	askedEvent    = "agent:permission_request"
	resolvedEvent = "agent:permission_resolved"
	busEvent      = "bus:message"
	// dataFrame is the type of a frame with the text of an agent:text, for clients that show the agent's output as it is. It is no
	// event: it has no number, and is not repeated for those who resume.
	dataFrame = "agent:data"
	// spawnErrorEvent is of a crew if an agent is refused, and of the agent if its host does not start it.
	spawnErrorEvent = "agent:spawn_error"
)

// event is a record of the topic of events. It is constant.
type event struct {
	topics.CrewEvent
	// about is the agent that the event is about, empty if there is none.
	about string
	// text is that of an agent:text; frame is nil then, because the text of several events is shown in one frame.
	text  string
	frame []byte
	// resolved, asked and message are what events of their types say; nil for others.
	resolved *outcome
	asked    *asked
	message  *view.BusMessage
}

// outcome is how a permission request ended.
type outcome = permission.Resolved

// lenient reads values that other programs may have written.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// eventOf prepares an event for clients. It does no I/O and needs no lock.
func eventOf(in topics.CrewEvent) *event {
	e := &event{CrewEvent: in}
	var fields struct {
		AgentID string           `json:"agentId"`
		Text    string           `json:"text"`
		Message *view.BusMessage `json:"message"`
	}
	// A member of another type leaves the fields empty: the frame is then shown as it is.
	_ = json.Unmarshal(in.Fields, &fields, lenient)
	e.about = fields.AgentID
	if id, ok := strings.CutPrefix(in.Subject, mailbox.OfAgent); ok {
		e.about = id
	}
	switch in.Type {
	case textEvent:
		e.text = fields.Text
		return e
	case resolvedEvent:
		e.resolved = &outcome{}
		if json.Unmarshal(in.Fields, e.resolved, lenient) != nil || e.resolved.RequestID == "" {
			e.resolved = nil
		}
	case askedEvent:
		e.asked = askedOf(in.Fields)
	case busEvent:
		e.message = fields.Message
	}
	if in.Type != askedEvent { // a person sees exactly what is asked
		in.Fields = redactJSON(in.Fields)
	}
	e.frame = frameOf(completed(in))
	return e
}

// size is about how much memory an event takes, in bytes.
func (e *event) size() int { return len(e.frame) + len(e.text) + len(e.Fields) + 256 }

var eventCodec = func() interface {
	Marshal(topics.CrewEvent) ([]byte, error)
} {
	catalog, err := topics.For("door")
	if err != nil {
		panic(err)
	}
	return catalog.CrewEvents.Codec()
}()

// frameOf returns the frame of an event. The event was decoded, so it can be encoded.
func frameOf(e topics.CrewEvent) []byte {
	raw, err := eventCodec.Marshal(e)
	if err != nil { // not reached; the frame would be shown without its own members
		e.Fields = nil
		raw, _ = eventCodec.Marshal(e)
	}
	return raw
}

// textFrame returns the frame of the text, without its secrets, of one or several events of an agent that follow each other. last is the newest of
// them, and from the seq of the first one.
func textFrame(last *event, from int64, text string) []byte {
	shown := last.CrewEvent
	fields := []any{"agentId", last.about, "text", text}
	if from != last.Seq {
		fields = append(fields, "fromSeq", from)
	}
	shown.Fields = entrance.Object(fields...)
	return frameOf(shown)
}

// problem returns a frame about something that a client did wrong.
func problem(text string) []byte { return entrance.Object("type", "error", "message", text) }

// completed adds the members that clients of FlightDeck's event catalog read and that the record has in another place. The members of
// the record stay.
func completed(in topics.CrewEvent) topics.CrewEvent {
	complete, known := catalogShapes[in.Type]
	var fields map[string]topics.Raw
	if !known || json.Unmarshal(in.Fields, &fields, lenient) != nil {
		return in
	}
	complete(func(to string, value topics.Raw) {
		if _, there := fields[to]; !there && value != nil {
			fields[to] = value
		}
	}, fields)
	in.Fields = entrance.JSON(fields)
	return in
}

// catalogShapes are the events whose records have another shape than the catalog, with what adds its members.
var catalogShapes = map[string]func(add func(string, topics.Raw), fields map[string]topics.Raw){
	"agent:plan": func(add func(string, topics.Raw), fields map[string]topics.Raw) { add("entries", fields["plan"]) },
	"agent:tool_call": func(add func(string, topics.Raw), fields map[string]topics.Raw) {
		for _, name := range []string{"toolCallId", "title", "kind", "status"} {
			add(name, memberOf(fields["toolCall"], name))
		}
	},
	"lead:progress": func(add func(string, topics.Raw), fields map[string]topics.Raw) {
		add("summary", topics.Raw(`""`))
		for _, name := range []string{"completed", "in_progress", "blocked"} {
			add(name, memberOf(fields["dag"], name))
			add(name, topics.Raw("[]"))
		}
	},
	"group:created":  addGroup,
	"group:archived": addGroup,
}

// addGroup adds the group, whose members the record has beside each other.
func addGroup(add func(string, topics.Raw), fields map[string]topics.Raw) {
	var group []any
	for _, name := range []string{"name", "leadId", "projectId", "memberIds", "createdAt"} {
		if v, ok := fields[name]; ok {
			group = append(group, name, v)
		}
	}
	add("group", slices.Clip(entrance.Object(group...)))
}

func memberOf(object topics.Raw, name string) topics.Raw {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	v, _ := topics.Lookup(object, name)
	return v
}
