// Package operations has what operators do to the records of an agent, for commands and screens of theirs: it reads dead letters and
// writes them back to their topics, each once; it ends turns and sessions; it reads how far groups are behind.
// The command examples/operate and package console use it.
//
//	{group}-dlq --> Letter, Marks --> WriteBack --+--> the topic that the letter came from
//	                                              +--> {group}-dlq: a mark (topics.HeaderErrorRequeued)
//
// Every record that it writes has the header topics.HeaderBy: who asked for it.
package operations
