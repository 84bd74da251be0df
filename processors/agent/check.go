package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/turntable-streams/turntable/internal/loopback"
	"github.com/turntable-streams/turntable/processors/turn"
)

// ErrConfig is wrapped by the errors of New. They name the field.
var ErrConfig = errors.New("agent: bad configuration")

// tokenTTL is how long a tool can answer later, at most. The turn waits for less.
const tokenTTL = 24 * time.Hour

// check returns what is wrong with a configuration as a whole. What is wrong with one part, the part itself says.
func (c *Config) check(given []string) error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Parts&^allParts != 0, "Parts: unknown part")
	wrong(c.Parts.has(Workers) && c.Model == nil, "Model is missing: nothing would answer")
	wrong(c.Memory != nil && c.Memory.Updater == nil, "Memory: Updater is missing: nothing would be remembered")
	wrong(c.Budgets.Tenant != turn.Budget{} && c.Tenant == nil, "Budgets: those of tenants need Tenant: no user would have one")
	wrong(c.Deliver != nil && len(c.Deliver.Services.Names()) == 0, "Deliver: Services has none: see sink.ParseServices")
	if c.Channels != nil {
		wrong(len(c.Channels.Accounts) == 0, "Channels: Accounts has none: no one could write")
		_, err := c.Channels.transport("")
		wrong(err != nil, "Channels: %w", err)
	}
	if c.Listen != "" {
		host, _, err := net.SplitHostPort(c.Listen)
		wrong(err != nil, "Listen: %q is not host:port", c.Listen)
		wrong(err == nil && !loopback.Is(host) && c.Authenticate == nil && !c.Open,
			"Listen: other machines can reach %s: set Authenticate, or Open if everyone there may do everything", c.Listen)
		wrong(!c.Parts.has(Doors), "Listen is set and Parts has no Doors")
	}
	names := map[string]bool{}
	for _, name := range given {
		names[name] = true
	}
	for i, t := range c.Tools {
		wrong(t.Name == "" || t.Func == nil, "Tools[%d]: no name or no function", i)
		wrong(names[t.Name], "Tools[%d]: there is another tool with the name %q", i, t.Name)
		names[t.Name] = true
	}
	errs = append(errs, writable(c.StateDir))
	return errors.Join(errs...)
}

// writable reports whether files can be made in a directory, which it creates.
func writable(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("StateDir: %w", err)
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return fmt.Errorf("StateDir: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
