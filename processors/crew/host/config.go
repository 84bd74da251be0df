package host

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by every error of New.
var ErrConfig = processors.ErrConfig

// Rule says what a host does with a request of an agent.
type Rule string

// The rules of a Policy.
const (
	Allow Rule = "allow"
	Ask   Rule = "ask" // a person decides, as for a permission request
	Deny  Rule = "deny"
)

// Policy says what agents may have their host do in their directories. An empty rule is the default.
type Policy struct {
	Read     Rule // fs/read_text_file; the default is Allow
	Write    Rule // fs/write_text_file; the default is Ask
	Terminal Rule // terminal/create; the default is Ask
	// Stderr adds the end of an agent's standard error, at most 4 KiB, to the record of its exit. It may hold secrets. The
	// default is false: it is only logged, at debug level.
	Stderr bool
}

// Config is what a host needs to know.
type Config struct {
	// Agent is the name of the catalog: that of the crews' topics.
	Agent string
	// Name is the name of the host, unique among the hosts of Agent. Rows keep it, so it must not change.
	Name    string
	Brokers []string
	// Commands are the command lines of agents by provider. That of "" is for agents without a provider and for those whose
	// provider has none. A command line must make a program speak ACP on its standard input and output. "{model}" in an argument
	// is replaced by the agent's model; an argument with it is left out for an agent without one.
	Commands map[string][]string
	// Modes are the modes of agents by provider, as Commands. Without one, the host sets a mode in which the agent asks before it does
	// something, as far as the IDs and the texts of its modes say, and refuses an agent that has none; an agent that leaves it is set
	// back, or stopped. OpenCode, which has no such mode, gets variables with which it asks. A mode that is named here is set whatever
	// it approves by itself, and OpenCode is left to its own configuration.
	Modes map[string]string
	// Dirs are the directories in which agents may work: theirs must be one of them, or inside one.
	Dirs   []string
	Policy Policy
	// Env are the names of the environment variables that agents and terminals get of the host's. One that ends in "*" stands for
	// all with the prefix before it. The default is DefaultEnv. Keys for models are not among it: agents keep their own logins
	// below HOME. An agent that wants its client to sign in is told to use the API key of its environment.
	Env []string
	// Initialize is how long a new process may take until it has answered initialize, which includes its download with commands such
	// as npx. The default is 30 s.
	Initialize time.Duration
	// MaxAgents is the number of processes of agents at the same time. The default is 50.
	MaxAgents int
	// Logger gets no contents of prompts, answers or files. The default logs nothing.
	Logger *zap.Logger
	// Options are those of the connections to the brokers, such as processors.WithTLS.
	Options []processors.Option
}

// DefaultEnv are the environment variables that agents get by default.
func DefaultEnv() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TERM", "TMPDIR", "TZ", "XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SystemRoot", "PATHEXT",
	}
}

const maxName = 200

// complete completes the configuration, and returns its catalog and all of its problems.
func (c *Config) complete() (topics.Catalog, error) {
	var check bounds.Check
	catalog, err := topics.For(c.Agent, topics.WithCrews())
	if err != nil {
		check.Wrong("Agent:", "%w", err)
	}
	if c.Name == "" || len(c.Name) > maxName || strings.ContainsAny(c.Name, "/\x00\n") {
		check.Wrong("Name:", "empty, longer than %d bytes, or with a slash", maxName)
	}
	if len(c.Brokers) == 0 {
		check.Wrong("Brokers:", "none")
	}
	if len(c.Commands) == 0 {
		check.Wrong("Commands:", "none")
	}
	commands := make(map[string][]string, len(c.Commands))
	for _, provider := range slices.Sorted(maps.Keys(c.Commands)) {
		argv := slices.Clone(c.Commands[provider])
		if len(argv) == 0 || argv[0] == "" {
			check.Wrong("Commands:", "that of provider %q is empty", provider)
			continue
		}
		program, err := exec.LookPath(argv[0])
		if err != nil {
			check.Wrong("Commands:", "provider %q: %w", provider, err)
			continue
		}
		if argv[0], err = filepath.Abs(program); err != nil {
			check.Wrong("Commands:", "provider %q: %w", provider, err)
		}
		commands[provider] = argv
	}
	c.Commands = commands
	if len(c.Dirs) == 0 {
		check.Wrong("Dirs:", "none")
	}
	dirs := make([]string, 0, len(c.Dirs))
	for _, dir := range c.Dirs {
		real, err := realDir(dir)
		if err != nil {
			check.Wrong("Dirs:", "%w", err)
		}
		dirs = append(dirs, real)
	}
	c.Dirs = dirs
	for name, rule := range map[string]*Rule{"Read": &c.Policy.Read, "Write": &c.Policy.Write, "Terminal": &c.Policy.Terminal} {
		switch *rule {
		case "":
			*rule = Ask
			if name == "Read" {
				*rule = Allow
			}
		case Allow, Ask, Deny:
		default:
			check.Wrong("Policy."+name, "is %q, want allow, ask or deny", string(*rule))
		}
	}
	bounds.AtLeast(&check, "Initialize", &c.Initialize, defaultTimes().initialize, 1)
	bounds.AtLeast(&check, "MaxAgents", &c.MaxAgents, 50, 1)
	if c.Env == nil {
		c.Env = DefaultEnv()
	}
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	return catalog, check.Err(fmt.Errorf("%w: host", ErrConfig))
}

func (c *Config) times() times {
	t := defaultTimes()
	t.initialize = c.Initialize
	return t
}

// realDir is the absolute path of an existing directory, without symbolic links.
func realDir(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	at, err := os.Stat(real)
	if err == nil && !at.IsDir() {
		err = fmt.Errorf("%s is no directory", real)
	}
	return real, err
}

// workDir is the directory of an agent: inside one of Dirs.
func (c *Config) workDir(cwd string) (string, error) {
	real, err := realDir(cwd)
	if err != nil {
		return "", fmt.Errorf("the agent's directory: %w", err)
	}
	for _, dir := range c.Dirs {
		if rel, err := filepath.Rel(dir, real); err == nil && filepath.IsLocal(rel) {
			return real, nil
		}
	}
	return "", fmt.Errorf("the agent's directory %s is not in one of the host's", real)
}

// mode is the configured mode for an agent, empty if there is none.
func (c *Config) mode(start crewbody.Start) string {
	mode, ok := c.Modes[start.Provider]
	if _, own := c.Commands[start.Provider]; !ok && !own {
		mode = c.Modes[""]
	}
	return mode
}

// environ are the environment variables of agents and terminals.
func (c *Config) environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !slices.ContainsFunc(c.Env, func(allowed string) bool {
			prefix, many := strings.CutSuffix(allowed, "*")
			return name == allowed || many && strings.HasPrefix(name, prefix)
		})
	})
}

// command is the command line for an agent.
func (c *Config) command(start crewbody.Start) ([]string, error) {
	argv, ok := c.Commands[start.Provider]
	if !ok {
		argv, ok = c.Commands[""]
	}
	if !ok {
		return nil, fmt.Errorf("the host has no command for the provider %q", start.Provider)
	}
	filled := argv[:1:1]
	for _, arg := range argv[1:] {
		if strings.Contains(arg, "{model}") && start.Model == "" {
			continue
		}
		filled = append(filled, strings.ReplaceAll(arg, "{model}", start.Model))
	}
	return filled, nil
}
