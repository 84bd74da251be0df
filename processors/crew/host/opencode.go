package host

import (
	"slices"
	"strings"
)

// openCodeAsks are the permissions with which OpenCode asks before it does more than read. Without them it asks for nothing, and none of
// its modes changes that. The last rule that matches counts.
const openCodeAsks = `{"*":"ask","read":{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"},"glob":"allow",` +
	`"grep":"allow","list":"allow","todowrite":"allow","question":"allow","bash":"ask","edit":"ask","task":"ask","skill":"ask","lsp":"ask",` +
	`"webfetch":"ask","websearch":"ask","external_directory":"ask","doom_loop":"ask"}`

// openCodeEnv are the variables with which OpenCode asks, whatever the configurations of its user and of the repository say: those of
// its mode build count more than the others. Other agents ignore them. A configuration in the variable that the host passes on stays.
func openCodeEnv(passed []string) []string {
	env := []string{"OPENCODE_PERMISSION=" + openCodeAsks}
	const content = "OPENCODE_CONFIG_CONTENT="
	if slices.ContainsFunc(passed, func(v string) bool { return strings.HasPrefix(v, content) }) {
		return env
	}
	build := `{"build":{"permission":` + openCodeAsks + `}}`
	return append(env, content+`{"agent":`+build+`,"mode":`+build+`}`)
}
