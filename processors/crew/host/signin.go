package host

import (
	"errors"
	"fmt"
	"strings"
)

// authMethod is a way to sign in that an agent offers.
type authMethod struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// byKey reports whether the agent takes an API key from its environment variables: by the type that ACP has for that, or by the IDs of
// codex-acp and gemini-cli. The other methods need a person at the agent's machine.
func (m authMethod) byKey() bool { return m.Type == "env_var" || strings.Contains(m.ID, "api-key") }

// maxMethods bounds how many ways to sign in are tried and named.
const maxMethods = 5

// signedIn opens a session. If the agent wants its client to sign in first, it does so by API key and opens the session again.
func (r *run) signedIn(hello initialized, open func() error) error {
	err := open()
	var e *rpcError
	if !errors.As(err, &e) || e.Code != codeSignIn {
		return err
	}
	names, refused := "", ""
	for _, m := range hello.AuthMethods[:min(len(hello.AuthMethods), maxMethods)] {
		names += fmt.Sprintf(" %q", m.Name)
		if !m.byKey() {
			continue
		}
		no := r.call(r.host.times.session, "authenticate", map[string]any{"methodId": m.ID}, &struct{}{})
		if no == nil {
			if err = open(); !errors.As(err, &e) || e.Code != codeSignIn {
				return err
			}
			continue
		}
		refused += fmt.Sprintf("; %s: %s", m.ID, no)
	}
	if names == "" {
		names = " none"
	}
	return fmt.Errorf("sign in with the agent's own program first, as the user of the host, or pass the variable of its API key (Config.Env); "+
		"its ways to sign in are:%s: %w%s", names, err, refused)
}
