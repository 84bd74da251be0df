package crewtest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	acp "github.com/coder/acp-go-sdk"
)

// create begins the file of a session.
func (a *agent) create(s *session) error {
	if a.script.Store == "" {
		return nil
	}
	return os.WriteFile(a.file(s), nil, 0o600)
}

func (a *agent) file(s *session) string {
	return filepath.Join(a.script.Store, filepath.Base(s.id)+".jsonl")
}

// keep adds an update to the file of a session.
func (a *agent) keep(s *session, update json.RawMessage) {
	if a.script.Store == "" || s.replay || s.id == "" {
		return
	}
	f, err := os.OpenFile(a.file(s), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(bytes.Clone(update), '\n'))
	_ = f.Close()
}

// replay sends the updates in the file of a session.
func (a *agent) replay(s *session) error {
	raw, err := os.ReadFile(a.file(s))
	if err != nil {
		return &acp.RequestError{Code: -32002, Message: "no such session"}
	}
	for line := range bytes.Lines(raw) {
		a.update(s, bytes.TrimSpace(line))
	}
	return nil
}
