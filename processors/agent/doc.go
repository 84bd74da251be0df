// Package agent assembles an agent from the parts of this module: turns, a model, tools, approvals, memory, budgets, deliveries, channels,
// tasks of other agents and instances, and the doors. Each is switched on by one field of Config, and they agree by construction:
// topics, groups, workers and doors follow from the same configuration. What New builds is public, and a program that needs
// another arrangement builds it from the same packages (see Agent.Graphs, Agent.Handler and Config.Parts).
//
//	message --> /invoke, /api/chat --> turn --> model --> turn --> tools, people, agents, peers --> turn --> answer
//
// The doors of Config.Listen, or of Agent.Handler:
//
//	/invoke                  messages, with the events of their turns as answers (package invoke)
//	/api/chat                messages, with the answer on {agent}-message-output or delivered (package turnhttp)
//	/api/tools/response      results of tools that answer later (package turnhttp)
//	/api/gates               what waits for a person, and decisions (Approval; package gatehttp)
//	/channels/{channel}/{name}  what platforms send (Channels; package channel)
//	/api/delegations         tasks of other agents (Delegates; package delegationhttp)
//	/api/peer/               tasks of other instances (Peers; package peerhttp)
//	/ws                      sessions as they happen (package delivery/websocket)
//	/healthz                 the states of the groups, also during the start: 200 if all run and the doors answer
//
// # Guarantees
//
// They are those of the parts. Every message ends in one answer or in an error that says why. If a process is killed, another
// one, or the same after a restart, continues what it has begun; a paid call of a model is not made again if its answer was
// written. See packages turn and think.
//
// # Tests
//
// Package agenttest (processors/agent/agenttest) tests an agent without a broker, a model or a wait: the test scripts the
// replies of the model, speaks for the user and for the people who approve, moves the clock and crashes the agent, and the
// agent's own tools run.
//
// # Several processes
//
// Processes with the same name, capabilities and brokers are one agent. Config.Parts divides it: for example Groups and Doors
// in one process, and Workers in those that have the model. Without Config.Brokers and KAFKA_BOOTSTRAP_SERVERS the agent has a
// broker of its own, and is one process.
//
// # Partitions
//
// The topics that a start creates have 12 partitions, unless processors.WithPartitions is in Config.Kafka or the agent has topics
// already, which decide; those on a broker in the agent's own process have one. A log line says it. The number of
// partitions is the number of processes that can share the sessions. Package archive (the command turntable repartition) changes it
// while the agent is stopped.
package agent
