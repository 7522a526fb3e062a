"""Starting, asking, stopping and telling apart processes; who may use a device."""
