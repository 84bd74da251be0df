package fold

import (
	"github.com/turntable-streams/turntable/internal/rows/foldrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// viaFold is the origin of the gates.
	viaFold = "fold"
	// maxMessage is the maximum size of the text for the person who decides, in bytes, and maxName of the names and IDs.
	// Longer names are cut, longer IDs left out.
	maxMessage = 4 << 10
	maxName    = 256
	// maxOptions is the maximum size of the options and of the schema of an answer, in bytes. Larger ones are left out.
	maxOptions = 32 << 10
	// unnamedTool is the tool of a request that names none.
	unnamedTool = "unknown_tool"
)

// gateRequest returns the request for a decision about an interaction.
func (s *transition) gateRequest(t *foldrow.Turn, a folder.Interaction) topics.GateRequest {
	call := folder.GateCall(t.Id, int64(t.Attempt), a.Index)
	r := topics.GateRequest{
		GateID: topics.GateID(s.key, t.Id, call), SessionID: s.key, TurnID: t.Id, CallID: call,
		Kind: topics.GateKind(cut(a.Kind)), Tool: cut(a.Tool), ToolUseID: whole(a.ToolUseID), InteractionID: whole(a.ID),
		Args: a.Args, ArgsSHA256: topics.ArgsSHA256(a.Args), Message: questionOf(a.Payload), Options: optionsOf(a.Payload),
		Allowed: []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny},
		Origin:  topics.GateOrigin{Agent: s.topics.Agent, Via: viaFold}, Effect: "ask", ExpiresMS: s.now.Add(s.config.GateTimeout).UnixMilli(),
	}
	if r.Tool == "" {
		r.Tool = unnamedTool
	}
	switch a.Kind {
	case "user_input", "client_tool":
		r.Kind, r.Allowed = topics.GateInput, []topics.GateVerdict{topics.VerdictAnswer, topics.VerdictDeny}
		r.ResponseSchema = schemaOf(a.Payload)
	case "user_approval", "":
		r.Kind = topics.GateTool
	}
	if s.gateSize(r) > s.config.RecordLimit {
		// No one can see what would run, so it is denied.
		r.Args, r.Effect, r.Message = nil, "deny", "the arguments are too large to be shown"
	}
	return r
}

// gateSize returns an upper bound of the size of a request's record.
func (s *transition) gateSize(r topics.GateRequest) int {
	texts := 2*len(s.key) + 3*len(r.TurnID) + len(r.Tool) + len(r.ToolUseID) + len(r.InteractionID) + len(r.Message)
	return envelope + escaped*texts + len(r.Args) + len(r.Options) + len(r.ResponseSchema)
}

func cut(name string) string { return truncate.Text(name, maxName) }

func whole(id string) string {
	if len(id) > maxName {
		return ""
	}
	return id
}

// questionOf returns the text for the person: the payload's message or question, or the title of the call.
func questionOf(payload topics.Raw) string {
	call, _ := topics.Lookup(payload, "toolCall")
	for _, text := range []topics.Raw{lookup(payload, "message"), lookup(payload, "question"), lookup(call, "title")} {
		if len(text) > 0 && text[0] == '"' {
			if s := topics.TextOf(text); s != nil && *s != "" {
				return truncate.Marked(*s, maxMessage)
			}
		}
	}
	return ""
}

func lookup(object topics.Raw, name string) topics.Raw {
	v, _ := topics.Lookup(object, name)
	return v
}

// replyKinds are the kinds of options of the replies that runners offer by name.
var replyKinds = map[string]string{
	"once": "allow_once", "always": "allow_always", "reject": "reject_once",
}

// optionsOf returns the payload's options, or else its available replies as options; nil for none.
func optionsOf(payload topics.Raw) topics.Raw {
	for _, name := range []string{"options", "availableReplies"} {
		list, err := topics.Elements(lookup(payload, name))
		if err != nil || len(list) == 0 {
			continue
		}
		for i, v := range list {
			if list[i] = optionOf(v); list[i] == nil {
				return nil
			}
		}
		return small(folder.AppendMessages(nil, list))
	}
	return nil
}

// optionOf returns an option: an object unchanged, and an object for the name of a reply; nil for other values.
func optionOf(v topics.Raw) topics.Raw {
	switch {
	case len(v) == 0:
		return nil
	case v[0] == '{':
		return v
	case v[0] != '"':
		return nil
	}
	option := append(append([]byte(`{"optionId":`), v...), `,"name":`...)
	option = append(option, v...)
	if kind := replyKinds[*topics.TextOf(v)]; kind != "" {
		option = append(option, `,"kind":"`+kind+`"`...)
	}
	return append(option, '}')
}

func schemaOf(payload topics.Raw) topics.Raw {
	for _, name := range []string{"responseSchema", "requestedSchema"} {
		if v := lookup(payload, name); len(v) > 0 && v[0] == '{' {
			return small(v)
		}
	}
	return nil
}

func small(v topics.Raw) topics.Raw {
	if len(v) > maxOptions {
		return nil
	}
	return v
}
