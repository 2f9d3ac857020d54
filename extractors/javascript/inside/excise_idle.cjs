/* The main program of processes whose test runner is started by excise_node_hook.cjs: nothing. */
