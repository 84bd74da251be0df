package agent

import (
	"github.com/turntable-streams/turntable/processors/agent/internal/parts"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/processors/worker"
)

func init() {
	parts.Of = func(agent any, o parts.Options) ([]parts.Worker, []string, error) {
		a := agent.(*Agent)
		made, err := a.config.workers(a.name, a.plan, o)
		return made, a.plan.names(), err
	}
}

// addWorkers connects the workers.
func (a *assembly) addWorkers() error {
	model, err := a.model()
	if err != nil {
		return err
	}
	made, err := a.config.workers(a.name, a.plan, parts.Options{To: a.to, Model: model, Config: worker.Config{Logger: a.config.Logger}})
	for _, w := range made {
		a.workers = append(a.workers, connected(w.Run, a.brokers, a.kafka))
	}
	return err
}

// model returns the model with its tools, which publishes the pieces of its replies if it streams.
func (a *assembly) model() (think.Model, error) {
	m := a.config.Model
	if u, ok := m.(think.ToolUser); ok {
		given := a.plan.given
		for _, t := range a.config.Tools {
			given = append(given, think.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
		}
		if len(given) > 0 {
			var err error
			if m, err = u.WithTools(given...); err != nil {
				return nil, err
			}
			if closer, ok := m.(interface{ Close() }); ok {
				a.closing = append(a.closing, closer.Close)
			}
		}
	}
	if s, ok := m.(think.Streamer); ok {
		return think.Stream(a.name, a.to, s, think.WithStreamLogger(a.config.Logger))
	}
	return m, nil
}

// workers makes the workers: of the model, the tools, the compactor and the memories.
func (c *Config) workers(agent string, p plan, o parts.Options) (made []parts.Worker, err error) {
	thinks, err := think.New(agent, o.To, o.Model, think.Config{Config: o.Config})
	if err != nil {
		return nil, err
	}
	made = append(made, parts.Worker{
		Topic: p.catalog.EnrichedMessageInput.Name(), Run: thinks.Run, Handle: thinks.Handle, Observe: thinks.HandleOutput,
	})
	if functions := functionsOf(c.Tools, o.Tool); len(functions) > 0 {
		config := tools.Config{Config: o.Config, IgnoreUnknown: len(p.given) > 0} // groups answer them
		if c.CallbackSecret != "" {
			config.TokenSecret, config.TokenTTL = c.CallbackSecret, tokenTTL
		}
		calls, err := tools.NewWorker(agent, o.To, functions, config)
		if err != nil {
			return nil, err
		}
		made = append(made, parts.Worker{
			Topic: p.catalog.ToolUse.Name(), Run: calls.Run, Handle: calls.Handle, Observe: calls.HandleOutput,
		})
	}
	if c.Compactor != nil {
		compacts, err := compact.New(agent, o.To, c.Compactor, compact.Config{Config: o.Config})
		if err != nil {
			return nil, err
		}
		made = append(made, parts.Worker{
			Topic: p.catalog.CompactionRequest.Name(), Run: compacts.Run, Handle: compacts.Handle, Observe: compacts.HandleOutput,
		})
	}
	if c.Memory != nil {
		updates, err := updater.New(agent, o.To, c.Memory.Updater, updater.Config{Config: o.Config})
		if err != nil {
			return nil, err
		}
		made = append(made, parts.Worker{Topic: p.catalog.MemoirContextSessionEnd.Name(), Run: updates.Run, Handle: updates.Handle})
	}
	return made, nil
}

// functionsOf returns the functions of tools by name. instead may replace them.
func functionsOf(list []tools.Tool, instead func(string, tools.Func) tools.Func) map[string]tools.Func {
	functions := map[string]tools.Func{}
	for _, t := range list {
		functions[t.Name] = t.Func
		if instead != nil {
			functions[t.Name] = instead(t.Name, t.Func)
		}
	}
	return functions
}
