package crewhttp

import (
	"net/http"

	"github.com/turntable-streams/turntable/processors/auth"
)

// routes are the requests below the prefix.
var routes []route

func init() { // the functions of routes refer to find
	routes = []route{
		{http.MethodGet, "agents", auth.Read, (*Handler).listAgents},
		{http.MethodPost, "agents", auth.Write, (*Handler).spawn},
		{http.MethodGet, "agents/*", auth.Read, (*Handler).getAgent},
		{http.MethodDelete, "agents/*", auth.Control, (*Handler).terminate},
		{http.MethodPost, "agents/*/terminate", auth.Control, (*Handler).terminate},
		{http.MethodPost, "agents/*/message", auth.Write, (*Handler).message},
		{http.MethodPost, "agents/*/input", auth.Write, (*Handler).input},
		{http.MethodPost, "agents/*/interrupt", auth.Control, (*Handler).interrupt},
		{http.MethodPost, "agents/*/restart", auth.Control, (*Handler).restart},
		{http.MethodPost, "agents/*/autopilot", auth.Control, (*Handler).autopilot},
		{http.MethodPost, "agents/*/permission", auth.Answer, (*Handler).permission},
		{http.MethodGet, "agents/*/permissions/*", auth.Read, (*Handler).wholePermission},
		{http.MethodGet, "roles", auth.Read, (*Handler).listRoles},
		{http.MethodGet, "crews", auth.Read, (*Handler).listCrews},
		{http.MethodPost, "crews", auth.Control, (*Handler).configure},
		{http.MethodPost, "crews/*/message", auth.Write, (*Handler).broadcast},
		{http.MethodGet, "coordination/locks", auth.Read, (*Handler).listLocks},
		{http.MethodPost, "coordination/locks", auth.Control, (*Handler).lock},
		{http.MethodDelete, "coordination/locks/*", auth.Control, (*Handler).unlock},
		{http.MethodGet, "coordination/activity", auth.Read, (*Handler).listActivity},
		{http.MethodGet, "decisions", auth.Read, (*Handler).listDecisions},
		{http.MethodPost, "decisions/batch", auth.Answer, (*Handler).decideAll},
		{http.MethodPost, "decisions/*/confirm", auth.Answer, (*Handler).decide},
		{http.MethodPost, "decisions/*/reject", auth.Answer, (*Handler).decide},
		{http.MethodPost, "decisions/*/dismiss", auth.Answer, (*Handler).decide},
		{http.MethodGet, "groups", auth.Read, (*Handler).listGroups},
		{http.MethodGet, "groups/*/messages", auth.Read, (*Handler).listGroupMessages},
		{http.MethodPost, "groups/*/messages", auth.Write, (*Handler).groupSay},
		{http.MethodPost, "groups/*/messages/*/reactions", auth.Write, (*Handler).react},
		{http.MethodDelete, "groups/*/messages/*/reactions/*", auth.Write, (*Handler).unreact},
		{http.MethodGet, "bus/messages", auth.Read, (*Handler).listBus},
		{http.MethodGet, "delegations", auth.Read, (*Handler).listDelegations},
		{http.MethodGet, "tasks", auth.Read, (*Handler).listTasks},
		{http.MethodPost, "tool-auto-allow/*", auth.Control, (*Handler).allowTool},
		{http.MethodDelete, "tool-auto-allow/*", auth.Control, (*Handler).disallowTool},
		{http.MethodPost, "system/pause", auth.Control, (*Handler).pause},
		{http.MethodPost, "system/resume", auth.Control, (*Handler).pause},
	}
}
