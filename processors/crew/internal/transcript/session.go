package transcript

import (
	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// entry is an entry of a plan.
type entry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// plan replaces the plan. Entries that have no room are left out.
func (a applied) plan() []Change {
	var entries []topics.Raw
	for _, e := range bridge.Elements(a.get("entries")) {
		raw, err := json.Marshal(entry{
			Content:  truncate.Within(bridge.String(bridge.Get(e, "content")), maxEntry),
			Priority: truncate.Within(bridge.String(bridge.Get(e, "priority")), maxName),
			Status:   truncate.Within(bridge.String(bridge.Get(e, "status")), maxName),
		})
		if err == nil {
			entries = append(entries, raw)
		}
	}
	list := first(entries, maxPlan)
	a.t.Plan = list
	if len(entries) == 0 {
		a.t.Plan = nil
	}
	return []Change{{Event: EventPlan, Fields: Plan{AgentID: a.agentID, Plan: list}}}
}

func (a applied) commands() []Change {
	a.t.Commands = first(bridge.Elements(a.get("availableCommands")), maxList)
	return a.raw()
}

func (a applied) mode() []Change {
	a.t.CurrentMode = truncate.Within(bridge.String(a.get("currentModeId")), maxName)
	return a.raw()
}

func (a applied) options() []Change {
	a.t.Options = first(bridge.Elements(a.get("configOptions")), maxList)
	return a.raw()
}

// info changes the title. A title that is null clears it; one that is absent does not.
func (a applied) info() []Change {
	if value, present := topics.Lookup(a.update, "title"); present {
		a.t.Title = truncate.Within(bridge.String(value), maxTitle)
	}
	return a.raw()
}

// SessionReady sets the modes and the options in the answer to session/new or session/load; nil for none.
func (t *Transcript) SessionReady(modes, options topics.Raw) {
	if modes != nil {
		t.Modes = first(bridge.Elements(bridge.Get(modes, "availableModes")), maxList)
		t.CurrentMode = truncate.Within(bridge.String(bridge.Get(modes, "currentModeId")), maxName)
	}
	if options != nil {
		t.Options = first(bridge.Elements(options), maxList)
	}
}

// NewSession forgets what belongs to the earlier session of the agent. Its tool calls are kept for people, but an equal ID
// in the new session is another call. Close open calls first, see EndTurn.
func (t *Transcript) NewSession() {
	for _, c := range t.Calls {
		c.Earlier = true
	}
	t.Plan, t.Used, t.Size, t.Cost = nil, 0, 0, nil
	t.InputTokens, t.OutputTokens, t.CacheReadTokens, t.CacheWriteTokens = 0, 0, 0, 0
	t.Modes, t.Commands, t.Options, t.CurrentMode, t.Title = nil, nil, nil, "", ""
}
