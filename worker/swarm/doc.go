// Package swarm keeps child processes alive. A [Swarm], in the parent, starts a child
// for each of its slots, listens to them, replaces those that end or should end, and
// stops them; a [Child], in the child process, is the other end of that. The package
// knows nothing of jobs.
//
// Three files are inherited by each child. The guard pipe carries its configuration and then
// commands, one a line; its end of file says that the parent is gone. The status pipe
// carries messages to the parent, one JSON object a line. The [Board] is a page of
// shared memory on which the child notes what it runs, for the parent to read at any
// time and after a crash.
//
// What is to be done is decided by a pure function, step, of a state and an event; all
// else carries it out.
package swarm
