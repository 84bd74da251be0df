package examples

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/program"
)

var tutorial = filepath.Join(module, "examples", "tutorial")

// block is a fenced block of a page: its language, the word after it, its text, and the heading that it is under.
type block struct{ language, word, text, heading string }

var fence = regexp.MustCompile("(?ms)^(?:(## [^\n]*)|```([a-z]+)(?: ([a-z0-9]+))?\n(.*?)^```)$")

func blocksOf(t *testing.T) (blocks []block) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(tutorial, "README.md"))
	require.NoError(t, err)
	heading := ""
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		if m[1] != "" {
			heading = m[1]
			continue
		}
		blocks = append(blocks, block{m[2], m[3], m[4], heading})
	}
	return blocks
}

func source(t *testing.T, name ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{tutorial}, name...)...))
	require.NoError(t, err)
	return string(text)
}

// The code of the tutorial is that of its programs, which have at most 40 lines.
func TestTutorialShowsItsPrograms(t *testing.T) {
	shown := map[string]bool{}
	for _, b := range blocksOf(t) {
		switch {
		case b.language == "go" && b.word != "model":
			require.Contains(t, "\n"+source(t, b.word, "main.go"), "\n"+b.text, b.word)
			shown[b.word] = true
		case b.language == "js":
			require.Contains(t, "\n"+source(t, "step4page", "index.html"), "\n"+b.text)
		}
	}
	steps, err := filepath.Glob(filepath.Join(tutorial, "step*"))
	require.NoError(t, err)
	require.Len(t, steps, 6)
	for _, step := range steps {
		name := filepath.Base(step)
		require.True(t, shown[name], name)
		require.LessOrEqual(t, strings.Count(source(t, name, "main.go"), "\n"), 40, name)
	}
}

// The commands of the tutorial are run as a reader runs them, in one shell for each step, and print what the tutorial shows.
func TestCommandsOfTheTutorialPrintWhatItShows(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	blocks := blocksOf(t)
	require.Equal(t, "go mod init tutorial\n"+
		"go get github.com/turntable-streams/turntable@latest\n"+
		"go get github.com/turntable-streams/turntable/examples/tutorial/...\n"+
		"go build -o . github.com/turntable-streams/turntable/examples/tutorial/...\n", blocks[0].text, "what TestMain builds")
	commands := 0
	for i := 1; i < len(blocks); i++ {
		if blocks[i].language != "sh" || strings.HasPrefix(blocks[i].heading, "## 4.") { // see TestPageOfTheTutorial
			continue
		}
		heading := blocks[i].heading
		if !t.Run(strings.TrimPrefix(heading, "## "), func(t *testing.T) {
			s := newShell(t)
			for ; i < len(blocks) && blocks[i].heading == heading; i++ {
				if blocks[i].language != "sh" {
					continue
				}
				want := ""
				if i+1 < len(blocks) && blocks[i+1].language == "text" {
					want = blocks[i+1].text
				}
				s.run(t, blocks[i].text, want)
				commands++
			}
			i--
		}) {
			return
		}
	}
	require.Equal(t, 7, commands)
}

// shell is a shell in a folder with the programs of the tutorial. Port 8080 is another one that is free.
type shell struct {
	in        io.Writer
	out, errs *buffer
	port      string
	read      int // of out
}

const prompt = "-- the block has ended --\n"

func newShell(t *testing.T) *shell {
	t.Helper()
	dir := t.TempDir()
	programs, err := filepath.Glob(filepath.Join(bin, "step*"))
	require.NoError(t, err)
	for _, p := range programs {
		require.NoError(t, os.Symlink(p, filepath.Join(dir, filepath.Base(p))))
	}
	s := &shell{out: new(buffer), errs: new(buffer), port: freePort(t)}
	c := exec.CommandContext(t.Context(), "sh")
	c.Dir, c.Stdout, c.Stderr = dir, s.out, s.errs
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a failed test leaves running is killed with the shell
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	in, err := c.StdinPipe()
	require.NoError(t, err)
	s.in = in
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = in.Close()
		if t.Failed() {
			_ = c.Cancel()
		}
		_ = c.Wait()
	})
	return s
}

// run runs a block and waits until it has printed what is wanted, and nothing else on standard output.
func (s *shell) run(t *testing.T, commands, want string) {
	t.Helper()
	_, err := io.WriteString(s.in, strings.ReplaceAll(commands, "8080", s.port)+"echo '"+strings.TrimSpace(prompt)+"'\n")
	require.NoError(t, err)
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), `\.\.\.`, `[^\n]+`) + "$")
	require.Eventually(t, func() bool {
		printed := s.out.String()[s.read:]
		return strings.Contains(printed, prompt) && pattern.MatchString(strings.Replace(printed, prompt, "", 1))
	}, time.Minute, 10*time.Millisecond, "%s\n%s\n%s", commands, s.out, s.errs)
	s.read = len(s.out.String())
	for line := range strings.Lines(s.errs.String()) {
		require.Regexp(t, `set KAFKA_BOOTSTRAP_SERVERS|the doors are open|Killed`, line)
	}
}

// The lines for real models compile, and that of Anthropic, whose API is played here, runs the tool of step 2.
func TestRealModelsOfTheTutorial(t *testing.T) {
	dir := t.TempDir()
	step, overlay, args := source(t, "step2tool", "main.go"), map[string]map[string]string{"Replace": {}}, []string{"build", "-o", dir + string(filepath.Separator)}
	abs, err := filepath.Abs(module)
	require.NoError(t, err)
	for _, b := range blocksOf(t) {
		if b.word != "model" {
			continue
		}
		provider := regexp.MustCompile(`= (\w+)\.New`).FindStringSubmatch(b.text)[1]
		const path = `"github.com/turntable-streams/turntable/processors/turn/think`
		code := strings.Replace(step, "\tmodel, err := scripted.New()\n", b.text, 1)
		code = strings.Replace(code, `"github.com/turntable-streams/turntable/examples/tutorial/scripted"`, path+"\"\n\t"+path+"/"+provider+`"`, 1)
		file := filepath.Join(dir, provider+".go")
		require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
		overlay["Replace"][filepath.Join(abs, "examples", "tutorial", provider, "main.go")] = file
		args = append(args, "./examples/tutorial/"+provider)
	}
	require.Len(t, overlay["Replace"], 3)
	raw, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), raw, 0o600))
	build := exec.CommandContext(t.Context(), "go", append(args[:1:1], append([]string{"-overlay", filepath.Join(dir, "overlay.json")}, args[1:]...)...)...)
	build.Dir = module
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	api := httptest.NewServer(http.HandlerFunc(program.Claude))
	t.Cleanup(api.Close)
	agent, said := exec.CommandContext(t.Context(), filepath.Join(dir, "anthropic")), new(bytes.Buffer)
	agent.Env, agent.Stdout = []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + api.URL}, said
	require.NoError(t, agent.Run())
	require.Equal(t, "Order 7 is on its way. <nil>\n", said.String())
}
