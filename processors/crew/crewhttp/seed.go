package crewhttp

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

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
