package crewhttp

import (
	"net/http"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

// allRoutes are the requests below the prefix.
func (h *Handler) allRoutes() []entrance.Route {
	return []entrance.Route{
		{Method: http.MethodGet, Path: "agents", Rights: auth.Read, Serve: h.listAgents},
		{Method: http.MethodPost, Path: "agents", Rights: auth.Write, Serve: h.spawn},
		{Method: http.MethodGet, Path: "agents/*", Rights: auth.Read, Serve: h.getAgent},
		{Method: http.MethodDelete, Path: "agents/*", Rights: auth.Control, Serve: h.terminate},
		{Method: http.MethodPost, Path: "agents/*/terminate", Rights: auth.Control, Serve: h.terminate},
		{Method: http.MethodPost, Path: "agents/*/message", Rights: auth.Write, Serve: h.message},
		{Method: http.MethodPost, Path: "agents/*/input", Rights: auth.Write, Serve: h.input},
		{Method: http.MethodPost, Path: "agents/*/interrupt", Rights: auth.Control, Serve: h.interrupt},
		{Method: http.MethodPost, Path: "agents/*/restart", Rights: auth.Control, Serve: h.restart},
		{Method: http.MethodPost, Path: "agents/*/autopilot", Rights: auth.Control, Serve: h.autopilot},
		{Method: http.MethodPost, Path: "agents/*/permission", Rights: auth.Answer, Serve: h.permission},
		{Method: http.MethodGet, Path: "agents/*/permissions/*", Rights: auth.Read, Serve: h.wholePermission},
		{Method: http.MethodGet, Path: "roles", Rights: auth.Read, Serve: h.listRoles},
		{Method: http.MethodGet, Path: "crews", Rights: auth.Read, Serve: h.listCrews},
		{Method: http.MethodPost, Path: "crews", Rights: auth.Control, Serve: h.configure},
		{Method: http.MethodPost, Path: "crews/*/message", Rights: auth.Write, Serve: h.broadcast},
		{Method: http.MethodGet, Path: "coordination/locks", Rights: auth.Read, Serve: h.listLocks},
		{Method: http.MethodPost, Path: "coordination/locks", Rights: auth.Control, Serve: h.lock},
		{Method: http.MethodDelete, Path: "coordination/locks/*", Rights: auth.Control, Serve: h.unlock},
		{Method: http.MethodGet, Path: "coordination/activity", Rights: auth.Read, Serve: h.listActivity},
		{Method: http.MethodGet, Path: "decisions", Rights: auth.Read, Serve: h.listDecisions},
		{Method: http.MethodPost, Path: "decisions/batch", Rights: auth.Answer, Serve: h.decideAll},
		{Method: http.MethodPost, Path: "decisions/*/confirm", Rights: auth.Answer, Serve: h.decide},
		{Method: http.MethodPost, Path: "decisions/*/reject", Rights: auth.Answer, Serve: h.decide},
		{Method: http.MethodPost, Path: "decisions/*/dismiss", Rights: auth.Answer, Serve: h.decide},
		{Method: http.MethodGet, Path: "groups", Rights: auth.Read, Serve: h.listGroups},
		{Method: http.MethodGet, Path: "groups/*/messages", Rights: auth.Read, Serve: h.listGroupMessages},
		{Method: http.MethodPost, Path: "groups/*/messages", Rights: auth.Write, Serve: h.groupSay},
		{Method: http.MethodPost, Path: "groups/*/messages/*/reactions", Rights: auth.Write, Serve: h.react},
		{Method: http.MethodDelete, Path: "groups/*/messages/*/reactions/*", Rights: auth.Write, Serve: h.unreact},
		{Method: http.MethodGet, Path: "bus/messages", Rights: auth.Read, Serve: h.listBus},
		{Method: http.MethodGet, Path: "delegations", Rights: auth.Read, Serve: h.listDelegations},
		{Method: http.MethodGet, Path: "tasks", Rights: auth.Read, Serve: h.listTasks},
		{Method: http.MethodPost, Path: "tool-auto-allow/*", Rights: auth.Control, Serve: h.allowTool},
		{Method: http.MethodDelete, Path: "tool-auto-allow/*", Rights: auth.Control, Serve: h.disallowTool},
		{Method: http.MethodPost, Path: "system/pause", Rights: auth.Control, Serve: h.pause},
		{Method: http.MethodPost, Path: "system/resume", Rights: auth.Control, Serve: h.pause},
	}
}
