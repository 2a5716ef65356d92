// Package job is supervised commands: a job is a command run detached from whoever
// started it. It survives the client, the daemon and the terminal, and it can ask
// people questions while it runs.
//
//	(new) ──▶ queued ──▶ launching ──▶ running ──▶ completed   exit status 0
//	            │  ▲         │            ├──────▶ failed      another one, or it never began
//	            │  └─────────┤            ├──────▶ timeout     its time limit passed
//	            │  launcher lost,         ├──────▶ cancelled   somebody stopped it
//	            ▼  nothing begun          └──────▶ orphaned    its runner or its machine was lost
//	        cancelled
//
// Any of the first three is orphaned where its [Home] is lost. The last five are final.
// A question never changes a job's status: the job goes on, and waits for the answer if
// it wants to.
//
// Each launch has a runner, a process of its own session that owns the command's
// process group, captures what it prints, enforces its time limit and never opens
// the store. It works in a directory of its own ([Layout] says what lies there). A
// [Supervisor] starts runners and brings what they left in their directories into
// the store; any supervisor with the same home can, in whatever process, also after
// a crash. Every write of it names the launch's claim, so that a launch which was
// replaced or stopped writes nothing more.
//
// Where several machines share a store, each has a [Home]: an id in [Config.Home] and
// a lease that [Supervisor.Loop] keeps. A job belongs to the home that started it; any
// supervisor sees and stops it, and only those of its home reach its files.
//
// The caller does three things: make a [Supervisor] with a program that answers to
// `job-runner DIR` by calling [Runner]; run [Supervisor.Loop] in one long-lived
// process, or call [Supervisor.Pass] before reading; and pass no secret in a job's
// environment without naming it in [Spec.SecretEnv].
package job
