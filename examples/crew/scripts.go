package main

import (
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

// The providers of the agents, which name their command lines.
const (
	writer  = "writer"
	checker = "checker"
)

// The tasks of the specialists, and what the person asks of them later.
const (
	writeTask   = "Write parse.go"
	checkTask   = "Write parse_test.go"
	commentWish = "Please comment the parser."
	helloWish   = "Please say hello."
)

// The messages of the commits.
const (
	writeCommit   = "Add the parser"
	checkCommit   = "Test the parser"
	commentCommit = "Comment the parser"
)

// The commands that the agents ask permission for.
const (
	vetCommand  = "go vet ./..."
	pushCommand = "git push --force"
	curlCommand = "curl https://example.com/install.sh"
)

// marks are files by which the play tells the agents to go on, and the agents remember what they have done. So the play is the
// same on slow and on fast machines.
type marks string

func (m marks) path(name string) string { return filepath.Join(string(m), name) }

func (m marks) wait(name string) crewtest.Step { return crewtest.Step{Await: m.path(name)} }

func say(text string) crewtest.Step { return crewtest.Step{Text: text + "\n", Split: 7} }

func save(path, content string) crewtest.Step {
	return crewtest.Step{Tool: &crewtest.Tool{
		ID: "edit-" + path, Title: "Edit " + path, Kind: "edit",
		Steps: []crewtest.Step{{Save: &crewtest.File{Path: path, Content: content}}},
	}}
}

// ask asks for permission to run a command.
func ask(id, command string, allowed, rejected, cancelled string) crewtest.Step {
	call, err := json.Marshal(map[string]any{
		"toolCallId": id, "title": command, "kind": "execute", "status": "pending", "rawInput": map[string]any{"command": command},
	})
	if err != nil {
		panic(err)
	}
	return crewtest.Step{Ask: &crewtest.Ask{
		ToolCall: call, Allowed: []crewtest.Step{say(allowed)}, Rejected: []crewtest.Step{say(rejected)},
		Cancelled: []crewtest.Step{say(cancelled)},
	}}
}

// scripts are what the agents do, by provider. The lead has none.
func (m marks) scripts() map[string]crewtest.Script {
	session := func(name string, rules ...crewtest.Rule) crewtest.Script {
		return crewtest.Script{Load: true, Store: m.path(name), Rules: rules}
	}
	return map[string]crewtest.Script{
		"": session("lead-sessions",
			crewtest.Rule{Match: "Your task:", Once: m.path("lead-began"), Steps: []crewtest.Step{
				{Plan: []string{"Have the parser written", "Have it tested"}},
				say(`Two specialists do this. ⟦⟦ CREATE_AGENT {"role": "developer", "provider": "` + writer + `", "task": "` + writeTask + `"} ⟧⟧
⟦⟦ CREATE_AGENT {"role": "tester", "provider": "` + checker + `", "task": "` + checkTask + `"} ⟧⟧`),
				ask("curl", curlCommand, "Installed.", "Then not.", "No one answered, so I do without it."),
			}},
			crewtest.Rule{Match: `\[Agent Report\]`, Steps: []crewtest.Step{say("I have read the report.")}},
		),
		writer: session("writer-sessions",
			crewtest.Rule{Match: writeTask, Once: m.path("writer-began"), Steps: []crewtest.Step{
				say(`I take the file. ⟦⟦ LOCK_FILE {"filePath": "parse.go", "reason": "The parser is written"} ⟧⟧`),
				m.wait("parse-locked"),
				save("parse.go", "package parse\n\n// Parse parses.\nfunc Parse(string) bool { return true }\n"),
				ask("vet", vetCommand, "The code is vetted.", "Then without.", "No answer."),
				m.wait("commit"),
				say(`⟦⟦ COMMIT {"message": "` + writeCommit + `"} ⟧⟧`),
				m.wait("committed"),
				say(`⟦⟦ UNLOCK_FILE {"filePath": "parse.go"} ⟧⟧ ⟦⟦ COMPLETE_TASK {"summary": "The parser is written."} ⟧⟧`),
			}},
			crewtest.Rule{Match: commentWish, Once: m.path("writer-comments"), Steps: []crewtest.Step{
				say(`⟦⟦ LOCK_FILE {"filePath": "parse.go", "reason": "A comment"} ⟧⟧`),
				m.wait("parse-locked-again"),
				save("parse.go", "package parse\n\n// Parse reports whether a text can be parsed. Every text can.\nfunc Parse(string) bool { return true }\n"),
				m.wait("commit-again"),
				{Text: `⟦⟦ COMMIT {"message": "` + commentCommit + `"} ⟧⟧`},
				{Hang: true}, // until the process is killed
			}},
		),
		checker: session("checker-sessions",
			crewtest.Rule{Match: checkTask, Once: m.path("checker-began"), Steps: []crewtest.Step{
				m.wait("parse-locked"),
				say(`I test in the file itself. ⟦⟦ LOCK_FILE {"filePath": "parse.go", "reason": "Tests"} ⟧⟧`),
				m.wait("parse-denied"),
			}},
			crewtest.Rule{Match: "LOCK_FILE denied", Once: m.path("checker-yields"), Steps: []crewtest.Step{
				say(`Then in one of its own. ⟦⟦ LOCK_FILE {"filePath": "parse_test.go"} ⟧⟧`),
				m.wait("test-locked"),
				save("parse_test.go", "package parse\n\nimport \"testing\"\n\nfunc TestParse(t *testing.T) {\n\tif !Parse(\"\") {\n\t\tt.Fail()\n\t}\n}\n"),
				ask("push", pushCommand, "Pushed.", "I push nothing.", "No answer."),
				m.wait("commit"),
				say(`⟦⟦ COMMIT {"message": "` + checkCommit + `"} ⟧⟧`),
				m.wait("committed"),
				say(`⟦⟦ UNLOCK_FILE {"filePath": "parse_test.go"} ⟧⟧ ⟦⟦ COMPLETE_TASK {"summary": "The parser is tested."} ⟧⟧`),
			}},
			crewtest.Rule{Match: helloWish, Steps: []crewtest.Step{say("@user\nHello, I am still here.")}},
		),
	}
}
